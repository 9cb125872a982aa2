"""A GPU as messages and choices know it. Pure.

May import ``releases``.
"""

from __future__ import annotations

from msgspec import Struct

from teenycli.releases import Version


class Gpu(Struct, frozen=True):
    """A device: ``name`` is ``cuda:0``, ``product`` what it is sold as, ``cuda`` the driver's CUDA version, ``memory``
    in bytes (0: not asked for)."""

    name: str
    product: str
    sm: int
    cuda: Version
    memory: int = 0

    def __str__(self) -> str:
        return f"{self.name} ({self.product}, sm_{self.sm})"
