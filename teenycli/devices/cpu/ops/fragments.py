"""Matrices that a warp holds together: which lane has which element (PTX ISA 9.7.14, "Matrix Fragments").

May import ``value``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from teenycli.devices.cpu.value import Value, Writer

LANES = 32

#: For each element of a lane, and each lane, the row and the column that it is.
Layout = tuple[tuple[tuple[int, int], ...], ...]
#: For each lane of a result the vector and its lane that it comes from.
Order = tuple[tuple[int, int], ...]


@lru_cache(maxsize=64)
def of_a(rows: int, registers: int, parts: int) -> Layout:
    """A row-major fragment of ``8 * rows`` rows in ``registers``, ``parts`` elements to each: eight rows in a register,
    four lanes to a row; the next eight rows in the next, and then the next columns."""
    return tuple(
        tuple((lane // 4 + 8 * (r % rows), lane % 4 * parts + e + 4 * parts * (r // rows)) for lane in range(LANES))
        for r in range(registers)
        for e in range(parts)
    )


@lru_cache(maxsize=64)
def of_b(columns: int, registers: int, parts: int) -> Layout:
    """A column-major fragment: a row-major one on its side, ``8 * columns`` columns wide, columns of it last."""
    deep = registers // columns
    return tuple(
        tuple((lane % 4 * parts + e + 4 * parts * (r % deep), lane // 4 + 8 * (r // deep)) for lane in range(LANES))
        for r in range(registers)
        for e in range(parts)
    )


@lru_cache(maxsize=64)
def of_c(rows: int, columns: int) -> Layout:
    """Accumulators: two of a row to each lane, eight rows and then the next eight, eight columns and then the next."""
    return tuple(
        tuple((lane // 4 + 8 * r, lane % 4 * 2 + e + 8 * c) for lane in range(LANES))
        for c in range(columns)
        for r in range(rows)
        for e in range(2)
    )


def owners(layout: Layout) -> dict[tuple[int, int], tuple[int, int]]:
    """The element and the lane that hold a row and column."""
    return {place: (e, lane) for e, places in enumerate(layout) for lane, place in enumerate(places)}


# --- moving lanes ----------------------------------------------------------------------------------------------------


def picked(w: Writer, vectors: Sequence[Value], order: Order) -> Value:
    """A vector whose lane k is lane ``order[k][1]`` of vector ``order[k][0]``."""
    used = sorted({which for which, _ in order})
    texts = [w.lanes(vectors[which]) for which in used]
    kind = w.vector(vectors[0].type)
    wanted: list[tuple[int, int]] = [(used.index(which), lane) for which, lane in order]
    while True:
        pairs = [(texts[k], texts[k + 1] if k + 1 < len(texts) else "poison") for k in range(0, len(texts), 2)]
        texts = [
            w.assign(f"shufflevector {kind} {a}, {kind} {b}, <{w.width} x i32> <{_pick(wanted, k)}>")
            for k, (a, b) in enumerate(pairs)
        ]
        if len(texts) == 1:
            return Value(vectors[0].type, texts[0], False, any(vector.raw for vector in vectors))
        wanted = [(which // 2, lane) for lane, (which, _) in enumerate(wanted)]


def _pick(wanted: Sequence[tuple[int, int]], pair: int) -> str:
    """Lanes of two vectors side by side, and of nothing where a lane is wanted of another pair."""
    return ", ".join(
        f"i32 {which % 2 * LANES + lane}" if which // 2 == pair else "i32 poison" for which, lane in wanted
    )
