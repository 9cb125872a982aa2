"""Numbers, sizes, times and shapes in words. May import ``report.text``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from teenycli.report.text import visible

Number = int | float

_BINARY = ("KiB", "MiB", "GiB", "TiB", "PiB")


def count(number: int, noun: str, plural: str | None = None) -> str:
    """``1 launch``, ``2,048 launches``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def size(nbytes: int) -> str:
    """``17 bytes``, ``262.5 KiB``, ``1 GiB``: exact below 1,024, else three or four figures."""
    if nbytes < 1024:
        return count(nbytes, "byte")
    power = min((nbytes.bit_length() - 1) // 10, len(_BINARY))
    return f"{nbytes / 1024**power:.1f}".removesuffix(".0") + f" {_BINARY[power - 1]}"


def milliseconds(ms: float) -> str:
    """``0.85 us``, ``12.3 us``, ``4.56 ms``, ``1.23 s``: three figures."""
    if ms < 1:
        return f"{_figures(ms * 1e3)} us"
    return f"{_figures(ms)} ms" if ms < 1000 else f"{_figures(ms / 1e3)} s"


def rate(nbytes: int, ms: float) -> str | None:
    """Bytes a time as ``1.23 GB/s`` (powers of ten, as vendors count); None when no time passed."""
    if ms <= 0:
        return None
    megabytes = nbytes / ms / 1e3
    if megabytes < 1e3:
        return f"{_figures(megabytes)} MB/s"
    return f"{_figures(megabytes / 1e3)} GB/s" if megabytes < 1e6 else f"{_figures(megabytes / 1e6)} TB/s"


def _figures(value: float) -> str:
    """Three significant figures, and all of the whole part."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    return f"{value:,.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def number(value: Number) -> str:
    """An integer whole, with commas from five digits on; a float to six figures."""
    if isinstance(value, int):
        return f"{value:,}" if abs(value) > 9999 else str(value)
    return f"{value:.6g}"


def pair(a: Number, b: Number) -> tuple[str, str]:
    """Two numbers that differ, to nine figures, or to as many as it takes to tell them apart."""
    short = tuple(str(value) if isinstance(value, int) else f"{value:.9g}" for value in (a, b))
    return (short[0], short[1]) if short[0] != short[1] else (repr(a), repr(b))


def exact(value: Number) -> str:
    """A value as it is, to be copied: no commas, a float with all its figures."""
    return repr(value) if isinstance(value, float) else str(int(value))


def shape(dims: Sequence[int]) -> str:
    """``[2, 4, 8400]``."""
    return f"[{', '.join(map(str, dims))}]"


def triple(dims: Sequence[int]) -> str:
    """``128 x 1 x 1``, as grids and blocks are written."""
    return " x ".join(f"{dim:,}" for dim in dims)


def case(dims: Mapping[str, Number]) -> str:
    """``B=2, A=8400``."""
    return ", ".join(f"{visible(name)}={exact(value)}" for name, value in dims.items())
