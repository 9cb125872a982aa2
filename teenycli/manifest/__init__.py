"""``ops.toml`` to :class:`~teenycli.manifest.spec.OpSpec`, and the language of its expressions.

Knows nothing of PTX, devices or numpy. May import ``dtypes``, ``errors``.
"""

from __future__ import annotations

from teenycli.manifest.load import Manifest, find_manifest, load_manifest
from teenycli.manifest.spec import OpSpec

__all__ = ["Manifest", "OpSpec", "find_manifest", "load_manifest"]
