"""Reading Rust: a file's text to what each ``impl RuntimeOp`` of it hands a kernel, as data.

Needs the extra ``rust`` (tree-sitter). Knows nothing of PTX, manifests or click: what is compared with what is for
``checks``.
"""

from __future__ import annotations

from teenycli.rust.model import Impl, Packing, RustFile, Visit
from teenycli.rust.read import read_rust

__all__ = ["Impl", "Packing", "RustFile", "Visit", "read_rust"]
