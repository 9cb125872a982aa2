"""Element types of buffers and scalars. Imports nothing of ours, and no numpy."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Kind(StrEnum):
    """What the bits of an element mean."""

    BOOL = "bool"
    INT = "int"
    UINT = "uint"
    FLOAT = "float"
    PTR = "ptr"


class DType(Struct, frozen=True):
    """An element type: its name, its size in bytes, what its bits mean, and how close a result must come.

    ``rtol`` and ``atol`` are the default tolerances of a comparison with a reference; integers are exact.
    """

    name: str
    size: int
    kind: Kind
    rtol: float = 0.0
    atol: float = 0.0

    @property
    def is_float(self) -> bool:
        return self.kind is Kind.FLOAT

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.INT, Kind.UINT)

    def int_range(self) -> tuple[int, int]:
        """Smallest and largest value of an integer, bool or ptr type."""
        if self.kind is Kind.BOOL:
            return 0, 1
        bits = 8 * self.size
        return (-(1 << bits - 1), (1 << bits - 1) - 1) if self.kind is Kind.INT else (0, (1 << bits) - 1)

    def __str__(self) -> str:
        return self.name


def _rows() -> dict[str, DType]:
    rows = [DType("bool", 1, Kind.BOOL)]
    for bits in (8, 16, 32, 64):
        rows.append(DType(f"i{bits}", bits // 8, Kind.INT))
        rows.append(DType(f"u{bits}", bits // 8, Kind.UINT))
    rows += [
        DType("f16", 2, Kind.FLOAT, 1e-3, 1e-5),
        DType("bf16", 2, Kind.FLOAT, 1.6e-2, 1e-5),
        DType("f32", 4, Kind.FLOAT, 1.3e-6, 1e-5),
        DType("f64", 8, Kind.FLOAT, 1e-7, 1e-7),
        DType("e4m3", 1, Kind.FLOAT, 0.125, 2**-9),
        DType("e5m2", 1, Kind.FLOAT, 0.25, 2**-16),
        DType("ptr", 8, Kind.PTR),
    ]
    return {row.name: row for row in rows}


#: Every element type by name. e4m3 is the finite-only format with largest value 448.
DTYPES: dict[str, DType] = _rows()
