"""cvt.rs: which random bits meet which input, and what they do to it (PTX ISA 9.7.9, cvt, "rbits")."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.devices.cpu.kit import Array, evaluate, floats

pytestmark = pytest.mark.unit

#: Destination: its type, bits of a code, bits of the place it takes, random bits of an input, code of NaN.
FORMATS: dict[str, tuple[Any, int, int, int, int]] = {
    "f16x2": (np.float16, 16, 16, 13, 0x7FFF),
    "bf16x2": (ml_dtypes.bfloat16, 16, 16, 16, 0x7FFF),
    "e4m3x4": (ml_dtypes.float8_e4m3fn, 8, 8, 16, 0x7F),
    "e5m2x4": (ml_dtypes.float8_e5m2, 8, 8, 16, 0x7F),
    "e2m3x4": (ml_dtypes.float6_e2m3fn, 6, 8, 16, 0x1F),
    "e3m2x4": (ml_dtypes.float6_e3m2fn, 6, 8, 16, 0x1F),
    "e2m1x4": (ml_dtypes.float4_e2m1fn, 4, 4, 16, 0x07),
}
#: The bits of ``rbits`` that each input takes, the heaviest first.
_FORWARD, _BACKWARD = list(range(15, -1, -1)), list(range(16))
_FP8 = [[k + 16 for k in _BACKWARD], [k + 16 for k in _FORWARD], _BACKWARD, _FORWARD]
_FP4_UPPER, _FP4_LOWER = [*range(31, 23, -1), *range(15, 7, -1)], [*range(23, 15, -1), *range(7, -1, -1)]
BITS: dict[str, list[list[int]]] = {
    "f16x2": [list(range(28, 15, -1)), list(range(12, -1, -1))],
    "bf16x2": [list(range(31, 15, -1)), list(range(15, -1, -1))],
    **dict.fromkeys(("e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4"), _FP8),
    "e2m1x4": [_FP4_UPPER[::-1], _FP4_UPPER, _FP4_LOWER[::-1], _FP4_LOWER],
}


def run(format: str, inputs: list[Array], rbits: Array, *, modifiers: str = "") -> Array:
    """The codes of each input: an array for a, b (e, f)."""
    _, bits, place, _, _ = FORMATS[format]
    names = ["a", "b", "e", "f"][: len(inputs)]
    sources = ", ".join(f"%{name}" for name in names)
    if len(names) == 4:
        sources, modifiers = f"{{{sources}}}", modifiers or ".satfinite"
    wide = "" if place != 4 else " cvt.u32.u16 %d, %t;"
    target = "%t" if wide else "%d"
    line = f".reg .b16 %t; cvt.rs{modifiers}.{format}.f32 {target}, {sources}, %r;{wide}"
    given = dict(zip(names, inputs, strict=True)) | {"r": rbits}
    got = evaluate(line, given, {"d": "uint32"})["d"]
    shifts = [place * k for k in reversed(range(len(names)))]
    codes = np.stack([got >> shift & (1 << place) - 1 for shift in shifts])
    assert not (codes >> bits).any()
    return codes


@cache
def numbers_of(format: str) -> Array:
    """The finite numbers of the codes 0, 1, 2… of a format."""
    dtype, bits = FORMATS[format][:2]
    with np.errstate(invalid="ignore"):
        numbers = np.arange(1 << bits - 1, dtype=np.uint16 if bits > 8 else np.uint8).view(dtype).astype(np.float64)
    return np.extract(np.isfinite(numbers), numbers)


def neighbours(format: str, value: float) -> tuple[int, Fraction]:
    """The code at or below a finite magnitude, and how far it is from there to the next one, both of them finite."""
    numbers = numbers_of(format)
    below = int(np.searchsorted(numbers, value, side="right")) - 1
    if below == len(numbers) - 1:
        return below, Fraction(0)
    low, high = Fraction(float(numbers[below])), Fraction(float(numbers[below + 1]))
    return below, (Fraction(value) - low) / (high - low)


def random_of(format: str, lane: int, rbits: int) -> int:
    number = 0
    for bit in BITS[format][lane]:
        number = number << 1 | rbits >> bit & 1
    return number


def wanted(format: str, lane: int, value: float, rbits: int) -> int:
    """The code of a float within the finite range, or NaN."""
    _, bits, _, count, nan = FORMATS[format]
    if np.isnan(value):
        return nan
    below, rest = neighbours(format, abs(value))
    up = int(rest * 2**count) + random_of(format, lane, rbits) >= 2**count
    return below + int(up) | int(np.signbit(value)) << bits - 1


def samples(format: str) -> Array:
    """Floats of every binade of the format, subnormal ones too, and far below it."""
    least, most = numbers_of(format)[[1, -1]]
    exponents = np.random.default_rng(11).uniform(max(np.log2(least) - 4, -148), np.log2(most), 400)
    values = np.minimum(np.exp2(exponents), most).astype(np.float32)
    tricky, _ = floats("float32")
    inside = np.unique(tricky[np.abs(tricky) <= most])
    return np.concatenate([values, -values, inside, [np.nan]]).astype(np.float32)


@pytest.mark.parametrize("format", FORMATS)
def test_a_number_is_rounded_by_its_own_random_bits(format: str) -> None:
    a = samples(format)
    lanes = len(BITS[format])
    inputs = [np.roll(a, 7 * k) for k in range(lanes)]
    rbits = np.random.default_rng(3).integers(0, 2**32, len(a), dtype=np.uint32)
    rbits[::5], rbits[1::5] = 0, 0xFFFFFFFF
    got = run(format, inputs, rbits)
    for lane, values in enumerate(inputs):
        want = [wanted(format, lane, v, r) for v, r in zip(values.tolist(), rbits.tolist(), strict=True)]
        np.testing.assert_array_equal(got[lane], want, f"{format}, input {lane}")


@pytest.mark.parametrize("format", FORMATS)
def test_each_bit_has_the_weight_that_the_layout_gives_it(format: str) -> None:
    """One bit is set, and a number lacks 2**-k of a unit to the next one: it reaches that by a bit of that weight."""
    count, values = FORMATS[format][3], numbers_of(format)
    one = int(np.searchsorted(values, 1))
    unit = values[one + 1] - 1
    for weight in range(count):
        # Fraction so large that a bit of this weight takes it to a whole, and a lighter one does not.
        value = np.float32(1 + unit * (1 - 2.0 ** (weight - count)))
        rbits = np.array([1 << k for k in range(32)], np.uint32)
        got = run(format, [np.full(32, value)] * len(BITS[format]), rbits)
        for lane, order in enumerate(BITS[format]):
            heavy = set(order[: count - weight])
            assert [c - one for c in got[lane].tolist()] == [int(k in heavy) for k in range(32)], (weight, lane)


def test_all_random_numbers_together_give_the_mean() -> None:
    value = np.float32(1 + 1234 / 2**23)
    r = np.arange(2**13, dtype=np.uint32)
    got = run("f16x2", [np.full(2**13, value)] * 2, r << 16 | r)
    assert [(codes - 0x3C00).sum() for codes in got] == [1234, 1234]


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_too_large(format: str) -> None:
    """The largest number where that is asked for; else a half becomes infinite."""
    bits, top = FORMATS[format][1], numbers_of(format)[-1]
    largest = len(numbers_of(format)) - 1
    a = np.array([top, np.nextafter(np.float32(top), np.float32(np.inf)), top * 2 if top < 1e38 else np.inf, np.inf],
                 np.float32)  # fmt: skip
    for rbits in (0, 0xFFFFFFFF):
        r = np.full(len(a), rbits, np.uint32)
        for sign in (1, -1):
            bit = 0 if sign > 0 else 1 << bits - 1
            got = run(format, [sign * a] * len(BITS[format]), r, modifiers=".satfinite")
            assert (got == largest | bit).all()
            if format in ("f16x2", "bf16x2"):
                got = run(format, [sign * a] * 2, r)
                infinite = [False, rbits != 0, True, True]
                assert (got == np.where(infinite, largest + 1, largest) | bit).all()


@pytest.mark.parametrize("format", FORMATS)
def test_relu_leaves_nothing_negative(format: str) -> None:
    a = np.abs(samples(format))
    r = np.full(len(a), 0x9E3779B9, np.uint32)
    finite = ".satfinite" if format.endswith("x4") else ""
    lanes = len(BITS[format])
    plain = run(format, [a] * lanes, r)
    np.testing.assert_array_equal(run(format, [a] * lanes, r, modifiers=f".relu{finite}"), plain)
    negative = np.where(np.isnan(a), np.float32(-1), -a)
    assert not run(format, [negative] * lanes, r, modifiers=f".relu{finite}").any()
