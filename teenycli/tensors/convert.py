"""Between teeny's element types and numpy's, without losing a value in silence.

May import ``dtypes`` and ``errors`` only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from teenycli.dtypes import DTYPES, DType, Kind
from teenycli.errors import TeenyError

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Number = int | float

_SMALL_FLOATS = {"bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
_LETTERS = {Kind.INT: "i", Kind.UINT: "u", Kind.FLOAT: "f", Kind.PTR: "u"}
_finfo: Any = ml_dtypes.finfo

#: Elements worked on at a time, so that temporaries stay small beside the arrays themselves.
_CHUNK = 1 << 16


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """The little-endian numpy dtype with the same bits as ``dtype``: ml_dtypes' for bf16 and fp8, uint64 for ptr."""
    if dtype.kind is Kind.BOOL:
        return np.dtype(np.bool_)
    if dtype.name in _SMALL_FLOATS:
        small: np.dtype[Any] = np.dtype(_SMALL_FLOATS[dtype.name])
        return small
    return np.dtype(f"<{_LETTERS[dtype.kind]}{dtype.size}")


_NAMES = {numpy_dtype(dtype): dtype for dtype in DTYPES.values() if dtype.kind is not Kind.PTR}


def teeny_dtype(dtype: np.dtype[Any]) -> DType | None:
    """The element type that a numpy dtype of either byte order stands for, or None for one that buffers don't have."""
    return _NAMES.get(dtype.newbyteorder("<"))


def chunks(count: int) -> Iterator[slice]:
    """Slices that together cover ``count`` elements."""
    return (slice(start, min(start + _CHUNK, count)) for start in range(0, count, _CHUNK))


def check_size(nbytes: int, what: str) -> None:
    """Refuse, with TeenyError ``array-too-large``, what the machine's memory cannot hold.

    Systems that promise more memory than they have would end the process instead of refusing.
    """
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return
    held = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if nbytes > held:
        raise TeenyError("array-too-large", f"{what} takes {nbytes:,} bytes; this machine has {held:,} of memory")


def format_shape(shape: tuple[int, ...]) -> str:
    """``[2, 4, 8400]``; ``[]`` for a single element."""
    return f"[{', '.join(map(str, shape))}]"


def contiguous(array: Array, dtype: DType) -> Array:
    """``array`` in C order with the bits of ``dtype``, without a copy where it is so already."""
    return np.ascontiguousarray(array, numpy_dtype(dtype)).reshape(array.shape)


def raw_bytes(array: Array) -> npt.NDArray[np.uint8]:
    """The bytes of a C-ordered array, flat, as a view."""
    return array.reshape(-1).view(np.uint8)


def widen(values: Array) -> Doubles:
    """``values`` as float64, which every float type fits into, signalling NaNs and all."""
    with np.errstate(invalid="ignore"):
        return values.astype(np.float64)


def round_to(values: Array, dtype: DType) -> Array:
    """``values`` rounded once, to nearest even, to the float type ``dtype``.

    What is too large becomes inf, or NaN in e4m3, which has no inf.
    """
    with np.errstate(all="ignore"):
        if dtype.name in _SMALL_FLOATS and (values.dtype.itemsize > 4 or values.dtype.kind in "iu"):
            values = _to_single_odd(values.astype(np.float64))
        return values.astype(numpy_dtype(dtype))


def _to_single_odd(values: Doubles) -> npt.NDArray[np.float32]:
    """Doubles as singles, rounded to odd: a second rounding to a narrower type then acts as if it were the only one.

    ml_dtypes goes from doubles and integers to its types by way of single, rounding to nearest twice.
    """
    singles = values.astype(np.float32)
    widened = singles.astype(np.float64)
    bits = singles.view(np.uint32)
    inexact = (widened != values) & ~np.isnan(values)
    bits -= inexact & (np.abs(widened) > np.abs(values))
    bits |= inexact
    return singles


def convert(values: Array, dtype: DType, what: str) -> Array:
    """``values`` as a fresh C-ordered array of ``dtype``, of the same shape.

    Floats are rounded to nearest. An integer must come out as it went in, a finite float finite, and inf as inf.
    Raises TeenyError ``value-out-of-range`` that names the first element for which that cannot be, beginning with
    ``what`` ("x.npy"); ``element-type`` when the elements are no real numbers.
    """
    require_numbers(values.dtype, what)
    out = np.empty(values.shape, numpy_dtype(dtype))
    source, target = np.ascontiguousarray(values).reshape(-1), out.reshape(-1)
    for part in chunks(source.size):
        piece = source[part]
        target[part], kept = _convert_floats(piece, dtype) if dtype.is_float else _convert_integers(piece, dtype)
        if not kept.all():
            flat = part.start + int(np.argmin(kept))
            raise _lost(source[flat].item(), index_of(flat, values.shape), dtype, what)
    return out


def index_of(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of element number ``flat`` in C order."""
    return tuple(int(i) for i in np.unravel_index(flat, shape))


def _convert_floats(piece: Array, dtype: DType) -> tuple[Array, Bools]:
    out = round_to(piece, dtype)
    before, after = widen(piece), widen(out)
    return out, np.where(np.isfinite(before), np.isfinite(after), np.isnan(before) | (before == after))


def _convert_integers(piece: Array, dtype: DType) -> tuple[Array, Bools]:
    low, high = dtype.int_range()
    if piece.dtype.kind not in "biu":
        piece = widen(piece)
        # The bounds of an integer type are exact in double when the upper one is written as a power of two.
        kept = (piece == np.floor(piece)) & (piece >= float(low)) & (piece < float(high + 1))
    else:
        kept = _at_least(piece, low) & ~_at_least(piece, high + 1)
    with np.errstate(invalid="ignore"):
        return np.where(kept, piece, 0).astype(numpy_dtype(dtype)), kept


def _at_least(piece: Array, bound: int) -> Bools:
    """``piece >= bound`` for integers, where ``bound`` may lie outside their type."""
    if piece.dtype.kind == "b":
        piece = piece.view(np.uint8)
    info = np.iinfo(piece.dtype)
    if bound > info.max:
        return np.zeros(piece.shape, np.bool_)
    return piece >= max(bound, int(info.min))


def _lost(value: object, index: tuple[int, ...], dtype: DType, what: str) -> TeenyError:
    element = f"element {format_shape(index)}" if index else "the value"
    return TeenyError(
        "value-out-of-range",
        f"{what}: {element} is {value}, which {describe_range(dtype)}",
        hint=None if dtype.is_float else "nothing is rounded or wrapped to fit an integer type; convert it beforehand",
    )


def describe_range(dtype: DType) -> str:
    """What a type cannot hold, to end a sentence: ``i8 cannot hold: it takes whole numbers from -128 to 127``."""
    if dtype.is_float:
        special = "" if dtype.name == "e4m3" else ", inf"
        return f"{dtype} cannot hold: it takes up to {largest(dtype):g}{special} and NaN"
    low, high = dtype.int_range()
    return f"{dtype} cannot hold: it takes whole numbers from {low} to {high}"


def largest(dtype: DType) -> float:
    """The largest finite value of a float type."""
    return float(_finfo(numpy_dtype(dtype)).max)


def below_one(dtype: DType) -> float:
    """The largest value of a float type that is less than 1."""
    return 1 - float(_finfo(numpy_dtype(dtype)).epsneg)


def require_numbers(dtype: np.dtype[Any], what: str) -> None:
    """Refuse, with TeenyError ``element-type``, elements that are no real numbers of a type that buffers have."""
    if teeny_dtype(dtype) is not None:
        return
    hint = "only real numbers and booleans convert to a buffer"
    if dtype.kind == "V" and dtype.names is None:
        hint = "numpy writes bf16 and fp8 arrays as untyped bytes; save them as float32, or raw in a .bin"
    raise TeenyError("element-type", f"{what}: its elements are of numpy type '{dtype}'", hint=hint)
