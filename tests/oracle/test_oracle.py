"""The oracle's own arithmetic against numpy's, where both have it."""

from __future__ import annotations

import random
import struct
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from tests.oracle import convert, floating, floats  # noqa: F401 (they fill the table)
from tests.oracle.meaning import MEANINGS

pytestmark = pytest.mark.unit

_EDGES = [0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x3FFFFFFF, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x4B000001, 0x33800000]


def singles(count: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    rng = random.Random(1)
    bits = [
        rng.choice([0, 1 << 31]) | rng.choice([*_EDGES, rng.getrandbits(31), rng.getrandbits(31)]) for _ in range(count)
    ]
    return np.array(bits, np.uint32).view(np.float32)


@pytest.mark.parametrize("opcode", ["add", "sub", "mul", "div"])
def test_single_arithmetic_is_numpys(opcode: str) -> None:
    a, b = singles(4000), singles(4001)[1:]
    act = MEANINGS[opcode]({"type": "f32", "rnd": "rn"})
    with np.errstate(all="ignore"):
        wanted = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[opcode](a, b)
    bits = np.where(np.isnan(wanted), np.uint32(0x7FFFFFFF), wanted.view(np.uint32))
    assert [act(int(x), int(y)) for x, y in zip(a.view(np.uint32), b.view(np.uint32), strict=True)] == bits.tolist()


def test_directed_roundings_enclose_the_exact_sum() -> None:
    values = [v for v in singles(600) if np.isfinite(v) and abs(v) < 1e30]
    for x, y in pairwise(values):
        exact = Fraction(float(x)) + Fraction(float(y))
        bits = [struct.unpack("<I", struct.pack("<f", v))[0] for v in (x, y)]
        low, high = (
            Fraction(struct.unpack("<f", struct.pack("<I", MEANINGS["add"]({"type": "f32", "rnd": r})(*bits)))[0])
            for r in ("rm", "rp")
        )
        assert low <= exact <= high
        assert low == high or np.nextafter(np.float32(low), np.float32(np.inf)) == np.float32(high)


def test_halves_round_as_numpys_do() -> None:
    a = singles(4000)
    act = MEANINGS["cvt"]({"dtype": "f16", "atype": "f32", "rnd": "rn"})
    with np.errstate(all="ignore"):
        half = a.astype(np.float16)
    bits = np.where(np.isnan(half), np.uint16(0x7FFF), half.view(np.uint16))
    assert [act(int(x)) for x in a.view(np.uint32)] == bits.tolist()


@pytest.mark.parametrize("name", [name for name in floats.FORMATS if name != "f64"])
def test_every_small_number_survives_its_format(name: str) -> None:
    form = floats.FORMATS[name]
    for bits in range(1 << min(form.bits, 16)):
        value = floats.decode(form, bits << max(form.bits - 16, 0))
        if not value.is_nan:
            assert floats.encode(form, value) == bits << max(form.bits - 16, 0)
