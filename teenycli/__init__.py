"""teeny: read PTX, check a launch against it, run it.

The rooms and which way imports may point are drawn in ``docs/house.md``.
"""

from __future__ import annotations

__version__ = "0.1.0"
