"""cvt to and from fp8, fp6, fp4 and ue8m0: every code, every half, and float32 beside every boundary."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.devices.cpu.kit import Array, evaluate, floats

pytestmark = pytest.mark.unit

#: ml_dtypes type, bits of a code, bits of its place in a pair, code that a NaN becomes.
FORMATS: dict[str, tuple[Any, int, int, int]] = {
    "e4m3x2": (ml_dtypes.float8_e4m3fn, 8, 8, 0x7F),
    "e5m2x2": (ml_dtypes.float8_e5m2, 8, 8, 0x7F),
    "e2m3x2": (ml_dtypes.float6_e2m3fn, 6, 8, 0x1F),
    "e3m2x2": (ml_dtypes.float6_e3m2fn, 6, 8, 0x1F),
    "e2m1x2": (ml_dtypes.float4_e2m1fn, 4, 4, 0x07),
}


def numbers(format: str) -> Array:
    """The finite numbers of codes 0, 1, 2… of a format, as doubles that grow."""
    dtype, bits, _, _ = FORMATS[format]
    values = np.arange(1 << bits - 1, dtype=np.uint8).view(dtype).astype(np.float64)
    return np.extract(np.isfinite(values), values)


def encoded(format: str, a: Array) -> Array:
    """Codes of doubles: the nearer neighbour, of two the even one, and no further than the largest."""
    values, (_, bits, _, nan) = numbers(format), FORMATS[format]
    size = np.where(np.isnan(a), 0, np.minimum(np.abs(a), values[-1]))
    high = np.clip(np.searchsorted(values, size), 1, len(values) - 1)
    below, above = size - values[high - 1], values[high] - size
    code = np.where((above < below) | ((above == below) & (high % 2 == 0)), high, high - 1)
    return np.where(np.isnan(a), nan, code | np.where(np.signbit(a), 1 << bits - 1, 0)).astype(np.uint32)


def inputs(format: str) -> Array:
    """Float32 at, beside and between the numbers of a format, and tricky ones."""
    values = numbers(format)
    edges = np.concatenate([values, (values[1:] + values[:-1]) / 2, [values[-1] * 1.01, values[-1] * 1.1, 1e30]])
    exact = edges.astype(np.float32)
    beside = [np.nextafter(exact, np.float32(side)) for side in (-np.inf, np.inf)]
    tricky, _ = floats("float32")
    rng = np.random.default_rng(5)
    some = rng.standard_normal(500).astype(np.float32) * np.exp2(rng.integers(-20, 12, 500)).astype(np.float32)
    all_ = np.concatenate([exact, *beside, np.unique(tricky), [np.nan, np.inf], some]).astype(np.float32)
    return np.concatenate([all_, -all_])


def narrow(format: str, line: str, given: dict[str, Array]) -> Array:
    """Run a conversion into ``%t``; the pair as a 32-bit number."""
    held, type = (8, "u8") if FORMATS[format][2] == 4 else (16, "u16")
    return evaluate(f".reg .b{held} %t; {line} cvt.u32.{type} %d, %t;", given, {"d": "uint32"})["d"]


@pytest.mark.parametrize("format", FORMATS)
def test_floats_become_narrow_pairs(format: str) -> None:
    _, bits, place, _ = FORMATS[format]
    a = inputs(format)
    b = np.roll(a, 3)
    wanted = encoded(format, a.astype(float)) << place | encoded(format, b.astype(float))
    got = narrow(format, f"cvt.rn.satfinite.{format}.f32 %t, %a, %b;", {"a": a, "b": b})
    np.testing.assert_array_equal(got, wanted)
    positive = np.where(a <= 0, np.float32(0), a).astype(float)
    got = narrow(format, f"cvt.rn.satfinite.relu.{format}.f32 %t, %a, %b;", {"a": a, "b": a})
    np.testing.assert_array_equal(got & (1 << bits) - 1, encoded(format, positive))


@pytest.mark.parametrize("format", ["e4m3x2", "e5m2x2"])
def test_every_half_becomes_a_code(format: str) -> None:
    halves = np.arange(2**16, dtype=np.uint16)
    words = (halves.astype(np.uint32) << 16) | np.roll(halves, 1)
    code = encoded(format, halves.view(np.float16).astype(float))
    got = narrow(format, f"cvt.rn.satfinite.{format}.f16x2 %t, %a;", {"a": words})
    np.testing.assert_array_equal(got, code << 8 | np.roll(code, 1))


@pytest.mark.parametrize("format", FORMATS)
def test_every_pair_of_codes_widens_exactly(format: str) -> None:
    dtype, bits, place, _ = FORMATS[format]
    codes = np.arange(1 << 2 * place, dtype=np.uint32)
    held, load = (8, "u8") if place == 4 else (16, "u16")
    got = evaluate(
        f".reg .b{held} %t; cvt.{load}.u32 %t, %a; cvt.rn.f16x2.{format} %d, %t; cvt.rn.relu.f16x2.{format} %r, %t;",
        {"a": codes}, {"d": "uint32", "r": "uint32"},
    )  # fmt: skip
    for shift, half in ((0, 0), (place, 16)):
        code = (codes >> shift & (1 << bits) - 1).astype(np.uint8)
        value = code.view(dtype).astype(np.float16)
        wanted = np.where(np.isnan(value), 0x7FFF, value.view(np.uint16))
        np.testing.assert_array_equal(got["d"] >> half & 0xFFFF, wanted)
        np.testing.assert_array_equal(got["r"] >> half & 0xFFFF, np.where((wanted & 0x8000) > 0, 0, wanted))


def scale(a: float, up: bool, finite: bool) -> int:
    """The ue8m0 code of a magnitude, by a search over the powers of two."""
    if np.isnan(a):
        return 0xFF
    size = abs(a)
    code = sum(size >= 2.0**e for e in range(-126, 128))
    if np.isinf(size):
        code = 0xFF
    elif up and size > 2.0 ** (code - 127):
        code += 1
    return min(code, 0xFE) if finite else code


def test_scales_are_powers_of_two() -> None:
    tricky, _ = floats("float32")
    powers = np.exp2(np.arange(-149, 128)).astype(np.float32)
    a = np.unique(np.concatenate([tricky, powers, powers * np.float32(1.5), np.nextafter(powers, np.float32(0))]))
    a = np.concatenate([a, [np.inf, np.nan]]).astype(np.float32)
    for mode in ("rz", "rp"):
        for suffix in ("", ".satfinite"):
            lines = f".reg .b16 %t; cvt.{mode}{suffix}.ue8m0x2.f32 %t, %a, %b; cvt.u32.u16 %d, %t;"
            got = evaluate(lines, {"a": a, "b": -a}, {"d": "uint32"})["d"]
            wanted = [scale(v, mode == "rp", suffix != "") * 0x101 for v in a.tolist()]
            np.testing.assert_array_equal(got, wanted, mode + suffix)


def test_every_bf16_becomes_a_scale_and_every_scale_a_bf16() -> None:
    halves = np.arange(2**16, dtype=np.uint16)
    words = halves.astype(np.uint32) << 16 | 0x3F80
    got = evaluate(
        ".reg .b16 %t; cvt.rp.satfinite.ue8m0x2.bf16x2 %t, %a; cvt.u32.u16 %d, %t; cvt.rn.bf16x2.ue8m0x2 %b, %t;",
        {"a": words}, {"d": "uint32", "b": "uint32"},
    )  # fmt: skip
    with np.errstate(invalid="ignore"):
        values = (words & 0xFFFF0000).view(np.float32).astype(float).tolist()
    codes = np.array([scale(v, True, True) for v in values], np.uint32)
    np.testing.assert_array_equal(got["d"], codes << 8 | 127)
    back = codes.astype(np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(ml_dtypes.bfloat16)
    wanted = np.where(codes == 0xFF, 0x7FFF, back.view(np.uint16))
    np.testing.assert_array_equal(got["b"] >> 16, wanted)
    assert (got["b"] & 0xFFFF == 0x3F80).all()


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(("half", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_every_half_of_either_kind_becomes_a_code(format: str, half: str, dtype: Any) -> None:
    _, bits, place, _ = FORMATS[format]
    halves = np.arange(2**16, dtype=np.uint16)
    words = (halves.astype(np.uint32) << 16) | np.roll(halves, 1)
    with np.errstate(invalid="ignore"):
        values = halves.view(dtype).astype(float)
    code = encoded(format, values)
    got = narrow(format, f"cvt.rn.satfinite.{format}.{half}x2 %t, %a;", {"a": words})
    np.testing.assert_array_equal(got, code << place | np.roll(code, 1))
    got = narrow(format, f"cvt.rn.relu.satfinite.{format}.{half}x2 %t, %a;", {"a": words})
    np.testing.assert_array_equal(got & (1 << bits) - 1, np.roll(encoded(format, np.where(values <= 0, 0, values)), 1))


def power(codes: Array) -> Array:
    """What ue8m0 codes stand for, as doubles."""
    values: Array = np.where(codes == 0xFF, np.nan, np.exp2(codes.astype(float) - 127))
    return values


def brain_bits(values: Array, *, finite: bool = False) -> Array:
    """Doubles rounded to bf16 bits once; NaN is 0x7fff."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        bits = values.astype(ml_dtypes.bfloat16).view(np.uint16)
    if finite:
        bits = np.where(bits & 0x7FFF == 0x7F80, bits - 1, bits)
    result: Array = np.where(np.isnan(values), 0x7FFF, bits).astype(np.uint32)
    return result


@pytest.mark.parametrize("format", [*FORMATS, "s2f6x2"])
def test_pairs_of_codes_times_their_scales(format: str) -> None:
    dtype, bits, place, _ = FORMATS.get(format, (np.int8, 8, 8, 0))
    unit = 1 if format in FORMATS else 2.0**-6
    codes, scales = (v.reshape(-1) for v in np.meshgrid(np.arange(1 << bits), np.arange(256)))
    a = (codes << place | np.roll(codes, 5)).astype(np.uint32)
    s = (scales << 8 | np.roll(scales, 9)).astype(np.uint32)
    held, load = (8, "u8") if place == 4 else (16, "u16")
    name = f"scaled::n2::ue8m0.bf16x2.{format}"
    got = evaluate(
        f".reg .b{held} %t; .reg .b16 %u; cvt.{load}.u32 %t, %a; cvt.u16.u32 %u, %s;"
        f"cvt.rn.{name} %p, %t, %u; cvt.rn.satfinite.{name} %q, %t, %u; cvt.rn.relu.{name} %r, %t, %u;"
        f"cvt.rn.bf16x2.{format} %d, %t;",
        {"a": a, "s": s}, dict.fromkeys("pqrd", "uint32"),
    )  # fmt: skip
    number = codes.astype(np.uint8).view(dtype).astype(float) * unit
    for shift, value, scale in ((16, number, power(scales)), (0, np.roll(number, 5), power(np.roll(scales, 9)))):
        with np.errstate(over="ignore"):
            exact = value * scale
        parts = {key: word >> shift & 0xFFFF for key, word in got.items()}
        np.testing.assert_array_equal(parts["d"], brain_bits(value))
        np.testing.assert_array_equal(parts["p"], brain_bits(exact))
        np.testing.assert_array_equal(parts["q"], brain_bits(exact, finite=True))
        np.testing.assert_array_equal(parts["r"], brain_bits(np.where(exact <= 0, 0.0, exact)))


def fixed(values: Array) -> Array:
    """64ths of doubles, nearest even, held to a signed byte; the largest for a NaN."""
    sixty_fourths: Array = np.clip(np.rint(np.where(np.isnan(values), 9, values) * 64), -128, 127)
    return sixty_fourths.astype(np.int8).astype(np.uint32) & np.uint32(0xFF)


def test_numbers_over_their_scales_become_fixed_point() -> None:
    edges = np.arange(-300, 300).astype(np.float32) / 128
    tricky, _ = floats("float32")
    a = np.concatenate([edges, np.nextafter(edges, np.float32(9)), np.unique(tricky), [np.inf, -np.inf, np.nan]])
    a = np.tile(a.astype(np.float32), 3)
    scales = np.resize(np.array([127, 126, 128, 127, 120, 0, 254, 255, 131]), len(a))
    b, other = np.roll(a, 11), np.roll(scales, 4)
    words = (a.view(np.uint32) & 0xFFFF0000) | b.view(np.uint32) >> 16
    got = evaluate(
        ".reg .b16 %t, %u; cvt.u16.u32 %u, %s;"
        "cvt.rn.satfinite.s2f6x2.f32 %t, %a, %b; cvt.u32.u16 %p, %t;"
        "cvt.rn.satfinite.scaled::n2::ue8m0.s2f6x2.f32 %t, %a, %b, %u; cvt.u32.u16 %q, %t;"
        "cvt.rn.satfinite.relu.scaled::n2::ue8m0.s2f6x2.bf16x2 %t, %w, %u; cvt.u32.u16 %r, %t;",
        {"a": a, "b": b, "w": words, "s": (scales << 8 | other).astype(np.uint32)}, dict.fromkeys("pqr", "uint32"),
    )  # fmt: skip
    with np.errstate(invalid="ignore", over="ignore"):
        upper, lower = a.astype(float) / power(scales), b.astype(float) / power(other)
        halves = [np.float32(1) * (v.view(np.uint32) & 0xFFFF0000).view(np.float32) for v in (a, b)]
        scaled = [v.astype(float) / power(s) for v, s in zip(halves, (scales, other), strict=True)]
    np.testing.assert_array_equal(got["p"], fixed(a.astype(float)) << 8 | fixed(b.astype(float)))
    np.testing.assert_array_equal(got["q"], fixed(upper) << 8 | fixed(lower))
    positive = [fixed(np.where(v <= 0, 0, v)) for v in scaled]
    np.testing.assert_array_equal(got["r"], positive[0] << 8 | positive[1])
