"""Floating point: IEEE operations bit for bit against exact rationals, approximations against their bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.devices.cpu.kit import Array, evaluate, floats

pytestmark = pytest.mark.unit

MODES = ["rn", "rz", "rm", "rp"]


def round_fraction(value: Fraction, dtype: str, mode: str, zero_sign: int) -> float:
    """An exact rational rounded to f32 or f64."""
    digits, least, top = (24, -149, 128) if dtype == "float32" else (53, -1074, 1024)
    if value == 0:
        return math.copysign(0.0, zero_sign)
    negative, size = value < 0, abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    ulp = Fraction(2) ** max(exponent - digits + 1, least)
    whole, rest = divmod(size, ulp)
    up = {
        "rn": rest * 2 > ulp or (rest * 2 == ulp and whole % 2 == 1),
        "rz": False, "rm": negative and rest > 0, "rp": not negative and rest > 0,
    }[mode]  # fmt: skip
    result = (whole + up) * ulp
    if result >= Fraction(2) ** top:
        away = mode == "rn" or mode == ("rm" if negative else "rp")
        limit = Fraction(2) ** top - Fraction(2) ** (top - digits)
        return math.copysign(math.inf if away else float(limit), -1 if negative else 1)
    return math.copysign(float(result), -1 if negative else 1)


def exact(op: str, mode: str, dtype: str, *args: float) -> float:
    """``op`` on IEEE numbers by rational arithmetic; special values as IEEE 754 has them."""
    if any(math.isnan(a) for a in args):
        return math.nan
    plain_ops: dict[str, Callable[..., Any]] = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt,
        "fma": lambda a, b, c: np.float64(a) * b + c,
    }  # fmt: skip
    with np.errstate(all="ignore"):
        plain = float(plain_ops[op](*args))
    if any(math.isinf(a) for a in args) or (op == "div" and args[1] == 0) or (op == "sqrt" and args[0] < 0):
        return plain
    f = [Fraction(a) for a in args]
    if op == "sqrt":
        return round_sqrt(args[0], dtype, mode)
    value = {"add": lambda: f[0] + f[1], "sub": lambda: f[0] - f[1], "mul": lambda: f[0] * f[1],
             "div": lambda: f[0] / f[1], "fma": lambda: f[0] * f[1] + f[2]}[op]()  # fmt: skip
    sign = 1
    if value == 0:
        signs = {
            "mul": [math.copysign(1, args[0]) * math.copysign(1, args[-1])],
            "div": [math.copysign(1, args[0]) * math.copysign(1, args[-1])],
            "add": [math.copysign(1, a) for a in args],
            "sub": [math.copysign(1, args[0]), -math.copysign(1, args[-1])],
            "fma": [
                math.copysign(1, args[0]) * math.copysign(1, args[1] if len(args) > 1 else 1),
                math.copysign(1, args[-1]),
            ],
        }[op]
        sign = int(signs[0]) if len(set(signs)) == 1 else (-1 if mode == "rm" else 1)
    return round_fraction(value, dtype, mode, sign)


def round_sqrt(a: float, dtype: str, mode: str) -> float:
    if a == 0:
        return a
    scale = 1 << 1200
    value = Fraction(a) * scale * scale
    whole = math.isqrt(value.numerator // value.denominator)
    exact_root = Fraction(whole * whole) == value
    return round_fraction(Fraction(2 * whole + (not exact_root), 2 * scale), dtype, mode, 1)


def same_bits(got: Array, wanted: Array, *args: Array) -> None:
    """Equal bit for bit, a NaN of float32 being 0x7fffffff."""
    kind = f"uint{8 * got.dtype.itemsize}"
    g, w = got.view(kind).copy(), wanted.astype(got.dtype).view(kind).copy()
    nan = np.isnan(wanted)
    if got.dtype == np.float32:
        w[nan] = 0x7FFFFFFF
    else:
        assert np.isnan(got[nan]).all()
        w[nan] = g[nan]
    bad = np.flatnonzero(g != w)
    assert not len(bad), [(tuple(a[k] for a in args), got[k], wanted[k]) for k in bad[:5]]


def reference(op: str, mode: str, dtype: str, *args: Array) -> Array:
    return np.array([exact(op, mode, dtype, *(float(v) for v in row)) for row in zip(*args, strict=True)], dtype)


@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize("mode", MODES)
def test_every_rounding_mode_is_exact(type: str, mode: str) -> None:
    dtype = {"f32": "float32", "f64": "float64"}[type]
    a, b = floats(dtype)
    ops = ["add", "sub", "mul", "div"]
    lines = "\n".join(f"{op}.{mode}.{type} %r{op}, %a, %b;" for op in ops)
    lines += f"fma.{mode}.{type} %rfma, %a, %b, %c; sqrt.{mode}.{type} %rsqrt, %a; rcp.{mode}.{type} %rrcp, %a;"
    c = np.roll(a, 17)
    names = [*ops, "fma", "sqrt", "rcp"]
    got = evaluate(lines, {"a": a, "b": b, "c": c}, {f"r{name}": dtype for name in names})
    for op in ops:
        same_bits(got[f"r{op}"], reference(op, mode, dtype, a, b), a, b)
    same_bits(got["rfma"], reference("fma", mode, dtype, a, b, c), a, b, c)
    same_bits(got["rsqrt"], reference("sqrt", mode, dtype, a), a)
    same_bits(got["rrcp"], reference("div", mode, dtype, np.ones_like(a), a), a)


def flushed(a: Array) -> Array:
    tiny = np.finfo(np.float32).tiny
    return np.where(np.abs(a) < tiny, np.copysign(np.float32(0), a), a).astype(np.float32)


def test_ftz_and_sat() -> None:
    a, b = floats("float32")
    got = evaluate(
        "mul.ftz.f32 %m, %a, %b; add.ftz.f32 %n, %a, %b; add.sat.f32 %s, %a, %b; fma.rn.ftz.sat.f32 %f, %a, %b, %a;"
        "abs.ftz.f32 %z, %a; neg.ftz.f32 %y, %a; setp.gt.ftz.f32 %p0, %a, 0f00000000;"
        "selp.f32 %x, 0f3F800000, %b, %p0;",
        {"a": a, "b": b}, dict.fromkeys("mnsfzyx", "float32"),
    )  # fmt: skip
    fa, fb = flushed(a), flushed(b)
    with np.errstate(all="ignore"):
        same_bits(got["m"], flushed(fa * fb), a, b)
        same_bits(got["n"], flushed(fa + fb), a, b)
        total = a + b
        same_bits(got["s"], np.where(np.isnan(total), 0, np.clip(total, 0, 1)) + np.float32(0), a, b)
        product = reference("fma", "rn", "float32", fa, fb, fa)
        same_bits(got["f"], np.where(np.isnan(product), 0, np.clip(flushed(product), 0, 1)) + np.float32(0), a, b)
    same_bits(got["z"], np.abs(fa), a)
    same_bits(got["y"], -fa, a)
    np.testing.assert_array_equal(got["x"].view("uint32"), np.where(fa > 0, np.float32(1), b).view("uint32"))


def test_min_and_max_of_nans_and_zeros() -> None:
    a, b = floats("float32")
    got = evaluate(
        "min.f32 %p, %a, %b; max.f32 %q, %a, %b; min.NaN.f32 %r, %a, %b; max.NaN.f32 %s, %a, %b;"
        "min.xorsign.abs.f32 %t, %a, %b;",
        {"a": a, "b": b}, dict.fromkeys("pqrst", "float32"),
    )  # fmt: skip

    def order(x: float) -> tuple[float, float]:
        return x, math.copysign(1, x)

    def pick(function: Callable[..., float], nan: bool) -> Array:
        rows = []
        for x, y in zip(a.tolist(), b.tolist(), strict=True):
            if math.isnan(x) or math.isnan(y):
                rows.append(math.nan if nan or (math.isnan(x) and math.isnan(y)) else y if math.isnan(x) else x)
            else:
                rows.append(function(x, y, key=order))
        return np.array(rows, np.float32)

    same_bits(got["p"], pick(min, False), a, b)
    same_bits(got["q"], pick(max, False), a, b)
    same_bits(got["r"], pick(min, True), a, b)
    same_bits(got["s"], pick(max, True), a, b)
    size = np.fmin(np.abs(a), np.abs(b))
    same_bits(got["t"], np.where(np.signbit(a) ^ np.signbit(b), -size, size), a, b)


def test_nan_bits_survive_moves_and_become_canonical_in_arithmetic() -> None:
    bits = np.array([0x7F800001, 0xFFC12345, 0x7FC00000, 0x3F800000], np.uint32)
    got = evaluate(
        "mov.b32 %m, %a; mov.b32 %f, %a; add.f32 %f, %f, 0f00000000; mov.b32 %s, %f; selp.b32 %q, %a, 0, %p1;"
        "setp.eq.u32 %p2, %a, 0; @!%p2 mov.b32 %q, %a; mul.f32 %g, %f, 0f40000000; add.u32 %t, %g, 0;"
        .replace("selp.b32 %q, %a, 0, %p1;", "mov.b32 %q, 0;"),
        {"a": bits, "f": np.zeros(4, np.float32), "g": np.zeros(4, np.uint32)},
        {"m": "uint32", "s": "uint32", "q": "uint32", "t": "uint32"},
    )  # fmt: skip
    np.testing.assert_array_equal(got["m"], bits)
    np.testing.assert_array_equal(got["q"], bits)
    np.testing.assert_array_equal(got["s"], [0x7FFFFFFF] * 3 + [0x3F800000])
    np.testing.assert_array_equal(got["t"], [0x7FFFFFFF] * 3 + [0x40000000])


def test_classes_signs_and_comparisons() -> None:
    a, b = floats("float32")
    cmps = ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]
    tests = ["finite", "infinite", "number", "notanumber", "normal", "subnormal"]
    lines = [f"set.{cmp}.u32.f32 %c{k}, %a, %b;" for k, cmp in enumerate(cmps)]
    lines += [f"testp.{name}.f32 %p0, %a; selp.b32 %t{k}, 1, 0, %p0;" for k, name in enumerate(tests)]
    lines += ["copysign.f32 %y, %a, %b; slct.f32.f32 %z, %a, %b, %a;"]
    names = {f"c{k}": "uint32" for k in range(14)} | {f"t{k}": "uint32" for k in range(6)}
    got = evaluate("\n".join(lines), {"a": a, "b": b}, names | {"y": "float32", "z": "float32"})
    unordered = np.isnan(a) | np.isnan(b)
    for k, (cmp, f) in enumerate(zip(cmps[:6], (np.equal, np.not_equal, np.less, np.less_equal, np.greater,
                                              np.greater_equal), strict=True)):  # fmt: skip
        np.testing.assert_array_equal(got[f"c{k}"], np.where(f(a, b) & ~unordered, 2**32 - 1, 0), cmp)
        np.testing.assert_array_equal(got[f"c{k + 6}"], np.where(f(a, b) | unordered, 2**32 - 1, 0), cmp + "u")
    np.testing.assert_array_equal(got["c12"], np.where(unordered, 0, 2**32 - 1))
    np.testing.assert_array_equal(got["c13"], np.where(unordered, 2**32 - 1, 0))
    tiny = np.finfo(np.float32).tiny
    small = (a != 0) & (np.abs(a) < tiny)
    wanted = [np.isfinite(a), np.isinf(a), ~np.isnan(a), np.isnan(a), np.isfinite(a) & ~small, small]
    for k, w in enumerate(wanted):
        np.testing.assert_array_equal(got[f"t{k}"], w.astype(int), tests[k])
    np.testing.assert_array_equal(got["y"].view("uint32"), np.copysign(b, a).view("uint32"))
    np.testing.assert_array_equal(got["z"].view("uint32"), np.where(a >= 0, a, b).view("uint32"))


# --- halves ----------------------------------------------------------------------------------------------------------


def half_values(dtype: type) -> Array:
    bits = np.array([0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x3C00, 0xBC00, 0x3555, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00,
                     0x7E01, 0x3F80, 0xBF80, 0x0080, 0x007F, 0x7F7F, 0xFF7F, 0x7F80, 0x4049, 0x1234, 0x5678],
                    np.uint16)  # fmt: skip
    rng = np.random.default_rng(1)
    return np.concatenate([bits, rng.integers(0, 2**16, 40).astype(np.uint16)]).view(dtype)


def odd_round(exact_value: Fraction | float, dtype: type) -> float:
    """A rational rounded once to a half type, by way of candidates around it."""
    if not isinstance(exact_value, Fraction):
        return float(np.array(exact_value).astype(dtype))
    digits, least, top = (11, -24, 16) if dtype is np.float16 else (8, -133, 128)
    if exact_value == 0:
        return 0.0
    size = abs(exact_value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    ulp = Fraction(2) ** max(exponent - digits + 1, least)
    whole, rest = divmod(size, ulp)
    if rest * 2 > ulp or (rest * 2 == ulp and whole % 2):
        whole += 1
    result = whole * ulp
    value = math.inf if result >= Fraction(2) ** top else float(result)
    return -value if exact_value < 0 else value


@pytest.mark.parametrize(("type", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_half_arithmetic_is_rounded_once(type: str, dtype: type) -> None:
    values = half_values(dtype)
    a, b = (g.reshape(-1) for g in np.meshgrid(values.view("uint16"), values.view("uint16")))
    c = np.roll(a, 7)
    ops = ["add", "sub", "mul", "min", "max"]
    rn = {"min": "", "max": ""}
    lines = "\n".join(f"{op}{rn.get(op, '.rn')}.{type} %{op}, %a, %b;" for op in ops)
    lines += f"fma.rn.{type} %fma, %a, %b, %c; fma.rn.relu.{type} %relu, %a, %b, %c;"
    lines += f"neg.{type} %neg, %a; abs.{type} %abs, %a;"
    names = [*ops, "fma", "relu", "neg", "abs"]
    got = evaluate(lines, {"a": a, "b": b, "c": c}, dict.fromkeys(names, "uint16"))
    x, y, z = (v.view(dtype).astype(float) for v in (a, b, c))

    def check(name: str, function: Callable[..., Fraction | float]) -> None:
        result = got[name].view(dtype).astype(float)
        for k, row in enumerate(zip(x.tolist(), y.tolist(), z.tolist(), strict=True)):
            if all(math.isfinite(v) for v in row):
                wanted = odd_round(function(*(Fraction(v) for v in row)), dtype)
                assert result[k] == wanted, (name, row, result[k], wanted)

    check("add", lambda p, q, _r: p + q)
    check("sub", lambda p, q, _r: p - q)
    check("mul", lambda p, q, _r: p * q)
    check("fma", lambda p, q, r: p * q + r)
    check("relu", lambda p, q, r: max(p * q + r, Fraction(0)))
    check("min", lambda p, q, _r: min(p, q))
    check("max", lambda p, q, _r: max(p, q))
    check("neg", lambda p, _q, _r: -p)
    check("abs", lambda p, _q, _r: abs(p))
    with np.errstate(all="ignore"):
        nan = np.isnan(x + y)
    assert (got["add"][nan] == 0x7FFF).all()
    assert not np.isnan(got["add"][~nan].view(dtype).astype(float)).any()


def test_pairs_are_two_halves() -> None:
    rng = np.random.default_rng(2)
    a, b, c = (rng.standard_normal(256).astype(np.float16) for _ in range(3))
    words = {name: v.view(np.uint32) for name, v in (("a", a), ("b", b), ("c", c))}
    got = evaluate(
        "fma.rn.f16x2 %d, %a, %b, %c; add.rn.f16x2 %e, %a, %b; max.f16x2 %f, %a, %b; neg.bf16x2 %g, %a;"
        "setp.lt.f16x2 %p0|%p1, %a, %b; selp.b32 %x, 1, 0, %p0; selp.b32 %y, 1, 0, %p1;",
        words, dict.fromkeys("defgxy", "uint32"),
    )  # fmt: skip
    np.testing.assert_array_equal(got["d"].view(np.float16), (a.astype(float) * b + c).astype(np.float16))
    np.testing.assert_array_equal(got["e"].view(np.float16), a + b)
    np.testing.assert_array_equal(got["f"].view(np.float16), np.maximum(a, b))
    np.testing.assert_array_equal(got["g"].view(np.uint16), a.view(np.uint16) ^ 0x8000)
    np.testing.assert_array_equal(got["x"], (a < b)[::2].astype(int))
    np.testing.assert_array_equal(got["y"], (a < b)[1::2].astype(int))


def test_two_floats_in_one_register() -> None:
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal(128).astype(np.float32) for _ in range(2))
    got = evaluate(
        "add.rn.f32x2 %d, %a, %b; mul.rz.f32x2 %e, %a, %b;",
        {"a": a.view(np.uint64), "b": b.view(np.uint64)}, {"d": "uint64", "e": "uint64"},
    )  # fmt: skip
    np.testing.assert_array_equal(got["d"].view(np.float32), a + b)
    same_bits(got["e"].view(np.float32), reference("mul", "rz", "float32", a, b))


# --- approximations --------------------------------------------------------------------------------------------------


def spread() -> Array:
    """Floats of every magnitude and sign, special ones among them."""
    bits = np.arange(0, 2**32, 65537, dtype=np.uint64).astype(np.uint32)
    return np.concatenate([bits.view(np.float32), np.linspace(-8, 8, 4001, dtype=np.float32)])


@pytest.mark.parametrize(("line", "function", "bound"), [
    ("ex2.approx.f32 %r, %a;", np.exp2, 2**-22),
    ("rcp.approx.f32 %r, %a;", lambda a: 1 / a, 2**-23),
    ("rsqrt.approx.f32 %r, %a;", lambda a: 1 / np.sqrt(a), 2**-22.9),
    ("sqrt.approx.f32 %r, %a;", np.sqrt, 2**-23),
    ("tanh.approx.f32 %r, %a;", np.tanh, 2**-10.987),
])  # fmt: skip
def test_relative_error_of_approximations(line: str, function: Callable[[Array], Array], bound: float) -> None:
    a = spread()
    with np.errstate(all="ignore"):
        wanted = function(a.astype(np.float64))
        got = evaluate(line, {"a": a}, {"r": "float32"})["r"].astype(np.float64)
        normal = np.isfinite(wanted) & (np.abs(wanted) >= 2.0**-126) & (np.abs(wanted) < 2.0**128)
        error = np.abs(got[normal] / wanted[normal] - 1)
        assert error.max() <= bound, (a[normal][error.argmax()], error.max())
        rest = np.isfinite(wanted) & (np.abs(wanted) < 2.0**-126)
        assert (np.abs(got[rest] - wanted[rest]) <= 2.0**-149).all()
        odd = ~normal & ~rest
        np.testing.assert_array_equal(got[odd], wanted[odd].astype(np.float32).astype(float))


def test_error_of_logarithm_sine_and_cosine() -> None:
    a = spread()
    got = evaluate(
        "lg2.approx.f32 %l, %a; sin.approx.f32 %s, %a; cos.approx.f32 %c, %a; lg2.approx.ftz.f32 %z, %a;",
        {"a": a}, dict.fromkeys("lscz", "float32"),
    )  # fmt: skip
    with np.errstate(all="ignore"):
        logarithm = np.log2(a.astype(np.float64))
    near = (a > 0.5) & (a < 2)
    far = np.isfinite(logarithm) & ~near
    assert np.abs(got["l"][near] - logarithm[near]).max() <= 2**-22
    assert np.abs(got["l"][far] / logarithm[far] - 1).max() <= 2**-22
    odd = ~np.isfinite(logarithm)
    np.testing.assert_array_equal(got["l"][odd], logarithm[odd].astype(np.float32))
    assert (got["z"][(a > 0) & (a < np.finfo(np.float32).tiny)] == -np.inf).all()
    inside = np.abs(a) <= np.pi
    assert np.abs(got["s"][inside] - np.sin(a[inside].astype(float))).max() <= 2**-20.5
    assert np.abs(got["c"][inside] - np.cos(a[inside].astype(float))).max() <= 2**-20.5
    assert np.isnan(got["s"][~np.isfinite(a)]).all()


def test_division_by_the_fast_forms() -> None:
    a, b = floats("float32")
    got = evaluate(
        "div.approx.f32 %p, %a, %b; div.full.f32 %q, %a, %b;", {"a": a, "b": b}, dict.fromkeys("pq", "float32")
    )
    with np.errstate(all="ignore"):
        wanted = a / b
    usual = (np.abs(b) >= 2.0**-126) & (np.abs(b) <= 2.0**126)
    same_bits(got["p"][usual], wanted[usual], a[usual], b[usual])
    large = (np.abs(b) > 2.0**126) & np.isfinite(b) & np.isfinite(a)
    assert (got["p"][large] == 0).all()
    assert np.isnan(got["p"][(np.abs(b) > 2.0**126) & np.isfinite(b) & np.isinf(a)]).all()
    same_bits(got["q"], wanted, a, b)


def test_gross_approximations_of_doubles() -> None:
    a, _ = floats("float64")
    got = evaluate("rcp.approx.ftz.f64 %p, %a; rsqrt.approx.ftz.f64 %q, %a;", {"a": a}, dict.fromkeys("pq", "float64"))
    assert not (got["p"].view("uint64") & 0xFFFFFFFF).any()
    normal = np.isfinite(a) & (np.abs(a) > 1e-300) & (np.abs(a) < 1e300)
    assert np.abs(got["p"][normal] * a[normal] - 1).max() < 2**-19
    positive = normal & (a > 0)
    assert np.abs(got["q"][positive] ** 2 * a[positive] - 1).max() < 2**-18


def test_gross_approximations_at_the_edges() -> None:
    """PTX ISA, tables of 9.7.3.14 and 9.7.3.17; the lower word is not looked at, and subnormal numbers are zero."""
    words = np.array([0xFFF00000, 0x80000001, 0x80000000, 0, 0x00000001, 0x7FF00000, 0xFFF80001, 0x7FF00001, 0x3FF00000,
                      0x7FE00000, 0x40100000, 0xBFF00000], np.uint64)  # fmt: skip
    nan, infinity, minus = 0x7FFFFFFF, 0x7FF00000, 0xFFF00000
    inverse = [1 << 31, minus, minus, infinity, infinity, 0, nan, nan, 0x3FF00000, 0, 0x3FD00000, 0xBFF00000]
    root = [nan, minus, minus, infinity, infinity, 0, nan, nan, 0x3FF00000, None, 0x3FE00000, nan]
    for low in (0, 0x12345678):
        a = (words << np.uint64(32) | np.uint64(low)).view(float)
        lines = "rcp.approx.ftz.f64 %p, %a; rsqrt.approx.ftz.f64 %q, %a;"
        got = evaluate(lines, {"a": a}, dict.fromkeys("pq", "float64"))
        assert got["p"].view(np.uint64).tolist() == [word << 32 for word in inverse]
        bits = got["q"].view(np.uint64).tolist()
        assert all(w is None or b == w << 32 for b, w in zip(bits, root, strict=True)), bits


def test_the_slow_root_of_doubles_keeps_all_bits() -> None:
    a = np.array([2.0, 3.0, 1e-310, 5e-324, 0.0, -0.0, np.inf, -1.0])
    got = evaluate("rsqrt.approx.f64 %p, %a;", {"a": a}, {"p": "float64"})["p"]
    with np.errstate(all="ignore"):
        wanted = 1 / np.sqrt(a)
    np.testing.assert_allclose(got, wanted, rtol=1e-15)
    assert np.signbit(got[5])
