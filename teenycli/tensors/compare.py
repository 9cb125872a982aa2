"""How close a result is to its reference, and what an output holds.

Both walk over the elements piece by piece, so that large outputs need little memory beside their own.
May import ``dtypes``, ``errors`` and, in this room, ``convert``.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from teenycli.dtypes import DType, Kind
from teenycli.errors import TeenyError
from teenycli.tensors.convert import (
    Array,
    Bools,
    Doubles,
    Number,
    chunks,
    contiguous,
    convert,
    format_shape,
    index_of,
    raw_bytes,
    round_to,
    widen,
)


class Sample(Struct, frozen=True):
    """One element: where, what came out, and what should have."""

    index: tuple[int, ...]
    result: Number
    reference: Number


class Comparison(Struct, frozen=True):
    """A result beside its reference, element by element.

    ``max_abs`` is the largest difference; NaN when a number stands against NaN, inf when one stands against inf.
    ``max_rel`` is the largest difference over the reference's size, elements where that is 0 left out. ``max_ulp``
    counts steps between neighbouring values of the output's type. ``worst`` is where ``max_abs`` is, None when the
    results are equal. ``unwritten`` counts elements that still hold the poison they began with. ``zeros_pass`` says
    that an output of zeros would be accepted too, so that this comparison proves little.
    """

    ok: bool
    count: int
    mismatches: int
    max_abs: Number
    max_rel: float
    max_ulp: int
    first: Sample | None
    worst: Sample | None
    unwritten: int
    zeros_pass: bool
    rtol: float
    atol: float


class Summary(Struct, frozen=True):
    """What an output holds: ``min``, ``max`` and ``mean`` of its finite elements (None when there are none), how
    many are NaN, infinite, or were never written, and the SHA-256 of its little-endian bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    min: Number | None
    max: Number | None
    mean: float | None
    nan: int
    inf: int
    unwritten: int
    sha256: str


class _Piece(Struct, frozen=True):
    """Differences of some elements: ``bad`` ones, absolute and relative size, ULPs, whether zero would be accepted."""

    bad: Bools
    diff: Array
    rel: Doubles
    ulp: npt.NDArray[np.uint64]
    zero_ok: Bools


def compare(
    result: Array, reference: Array, dtype: DType, rtol: float, atol: float, *, poisoned: bool = True
) -> Comparison:
    """Compare ``result``, of ``dtype``, with ``reference``, of the same shape and any real type.

    An element is right when ``|result - reference| <= atol + rtol * |reference|`` in double precision, when it is the
    reference rounded to ``dtype``, or when both are NaN. Integers, bool and ptr are compared in whole numbers.
    ``poisoned`` says that the result's bytes were 0xFF before the launch. Raises TeenyError ``array-shape``, and
    ``value-out-of-range`` when the output's integer type cannot hold the reference.
    """
    if result.shape != reference.shape:
        shapes = f"{format_shape(reference.shape)}, the result's {format_shape(result.shape)}"
        raise TeenyError("array-shape", f"the reference's shape is {shapes}")
    if not dtype.is_float:
        reference = convert(reference, dtype, "the reference")
    flat, expected = contiguous(result, dtype).reshape(-1), reference.reshape(-1)
    tally = _Tally()
    for part in chunks(flat.size):
        judge = _judge_floats if dtype.is_float else _judge_integers
        piece = judge(flat[part], expected[part], dtype, rtol, atol)
        tally.add(part.start, piece)
        if poisoned:
            # A float of all ones is a NaN that no instruction makes; an integer may well be -1.
            tally.unwritten += int(np.count_nonzero(_all_ones(flat[part]) & (dtype.is_float | piece.bad)))

    def sample(at: int | None) -> Sample | None:
        if at is None:
            return None
        return Sample(index_of(at, result.shape), _as_integers(flat)[at].item(), _as_integers(expected)[at].item())

    return Comparison(
        ok=tally.mismatches == 0,
        count=flat.size,
        mismatches=tally.mismatches,
        max_abs=tally.max_abs,
        max_rel=tally.max_rel,
        max_ulp=tally.max_ulp,
        first=sample(tally.first),
        worst=sample(tally.worst),
        unwritten=tally.unwritten,
        zeros_pass=tally.zeros_pass and flat.size > 0,
        rtol=rtol,
        atol=atol,
    )


class _Tally:
    """What the pieces come to. ``first`` and ``worst`` are element numbers in C order."""

    def __init__(self) -> None:
        self.mismatches = 0
        self.max_abs: Number = 0
        self.max_rel = 0.0
        self.max_ulp = 0
        self.first: int | None = None
        self.worst: int | None = None
        self.unwritten = 0
        self.zeros_pass = True

    def add(self, start: int, piece: _Piece) -> None:
        bad = int(np.count_nonzero(piece.bad))
        if bad and self.first is None:
            self.first = start + int(np.argmax(piece.bad))
        self.mismatches += bad
        # argmax takes a NaN for the largest, and so does _exceeds.
        at = int(np.argmax(piece.diff))
        if _exceeds(largest := piece.diff[at].item(), self.max_abs):
            self.max_abs, self.worst = largest, start + at
        if _exceeds(relative := float(np.max(piece.rel)), self.max_rel):
            self.max_rel = relative
        self.max_ulp = max(self.max_ulp, int(np.max(piece.ulp)))
        self.zeros_pass = self.zeros_pass and bool(piece.zero_ok.all())


def _exceeds(new: Number, old: Number) -> bool:
    return not math.isnan(old) and (math.isnan(new) or new > old)


def _judge_floats(result: Array, reference: Array, dtype: DType, rtol: float, atol: float) -> _Piece:
    with np.errstate(all="ignore"):
        rounded = round_to(reference, dtype)
        got, want, nearest = (widen(a) for a in (result, reference, rounded))
        finite = np.isfinite(got) & np.isfinite(want)
        # Where the reference overflows the type, the type's own overflow is the right answer.
        exact = (got == want) | (got == nearest) | np.isnan(got) & np.isnan(nearest)
        apart = np.where(exact, 0.0, np.where(np.isnan(got) | np.isnan(want), np.nan, np.inf))
        diff = np.where(finite, np.abs(got - want), apart)
        size = np.abs(want)
        bound = atol + rtol * size
        rel = np.where(finite, np.where(want != 0, diff / size, 0.0), apart)
        countable = finite & np.isfinite(nearest)
        ulp = np.where(countable, _distance(_order(result), _order(rounded)), np.uint64(0))
        zero_ok = (nearest == 0) | np.isfinite(want) & (size <= bound)
        return _Piece(~(exact | finite & (diff <= bound)), diff, rel, ulp, zero_ok)


def _judge_integers(result: Array, reference: Array, dtype: DType, rtol: float, atol: float) -> _Piece:
    wide = np.int64 if dtype.kind is Kind.INT else np.uint64
    got, want = (_as_integers(a).astype(wide) for a in (result, reference))
    diff, size = _distance(got, want), _distance(want, np.zeros_like(want))
    with np.errstate(all="ignore"):
        rel = np.where(size != 0, diff / size, 0.0)
    if rtol == 0 and atol == 0:
        return _Piece(diff != 0, diff, rel, diff, size == 0)
    bound = atol + rtol * size
    return _Piece(diff > bound, diff, rel, diff, size <= bound)


def _as_integers(array: Array) -> Array:
    """Bool as bytes, since one that is neither 0 nor 1 must not pass for True; the other types as they are."""
    return array.view(np.uint8) if array.dtype.kind == "b" else array


def _distance(a: Array, b: Array) -> npt.NDArray[np.uint64]:
    """``|a - b|`` of 64-bit integers, exact: the difference modulo 2**64, taken the right way round."""
    return np.maximum(a, b).view(np.uint64) - np.minimum(a, b).view(np.uint64)


def _order(array: Array) -> npt.NDArray[np.int64]:
    """Integers in the order of the floats, neighbours one apart, both zeros 0."""
    bits = array.view(f"<i{array.itemsize}").astype(np.int64)
    sign = -1 << (8 * array.itemsize - 1)
    # A negative float is sign and magnitude: its integer is the magnitude, negated.
    return np.where(bits < 0, sign - bits, bits)


def _all_ones(array: Array) -> Bools:
    ones: Bools = array.view(f"<i{array.itemsize}") == -1
    return ones


def summarize(name: str, array: Array, dtype: DType, *, poisoned: bool = True) -> Summary:
    """The :class:`Summary` of an output named ``name``.

    ``poisoned`` says that its bytes were 0xFF before the launch; then an element of all ones counts as unwritten in a
    float type, and in an integer type none does, since -1 is as likely a result.
    """
    array = contiguous(array, dtype)
    low, high, total, count, nan, inf, unwritten = math.inf, -math.inf, 0.0, 0, 0, 0, 0
    flat = array.reshape(-1)
    for part in chunks(flat.size):
        piece = _as_integers(flat[part])
        if dtype.is_float:
            unwritten += int(np.count_nonzero(_all_ones(piece))) if poisoned else 0
            piece = widen(piece)
            nan += int(np.count_nonzero(np.isnan(piece)))
            inf += int(np.count_nonzero(np.isinf(piece)))
            piece = piece[np.isfinite(piece)]
        if piece.size:
            low, high = min(low, piece.min().item()), max(high, piece.max().item())
            with np.errstate(over="ignore"):
                total, count = total + float(piece.sum(dtype=np.float64)), count + piece.size
    return Summary(
        name=name,
        dtype=dtype.name,
        shape=array.shape,
        min=low if count else None,
        max=high if count else None,
        mean=total / count if count else None,
        nan=nan,
        inf=inf,
        unwritten=unwritten,
        sha256=hashlib.sha256(raw_bytes(array).data).hexdigest(),
    )
