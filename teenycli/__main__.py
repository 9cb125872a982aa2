"""``python -m teenycli``."""

from __future__ import annotations

from teenycli.cli import main

main()
