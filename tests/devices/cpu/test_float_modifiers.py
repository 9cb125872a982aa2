"""Modifiers of floating-point arithmetic: mixed precision, pairs of f32, three inputs, ``.abs``, ``.ftz`` of halves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.devices.cpu.kit import Array, evaluate, floats
from tests.devices.cpu.test_floats import MODES, flushed, half_values, odd_round, reference, same_bits

pytestmark = pytest.mark.unit

HALVES: list[tuple[str, Any]] = [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)]


def saturated(a: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.where(np.isnan(a), np.float32(0), np.clip(a, 0, 1)).astype(np.float32) + np.float32(0)


@pytest.mark.parametrize(("type", "dtype"), HALVES)
@pytest.mark.parametrize("mode", MODES)
def test_mixed_precision(type: str, dtype: Any, mode: str) -> None:
    values = half_values(dtype).view(np.uint16)
    a, b = (column.reshape(-1) for column in np.meshgrid(values, values[::2]))
    singles, _ = floats("float32")
    c = np.resize(np.unique(singles), len(a)).astype(np.float32)
    lines = f"add.{mode}.f32.{type} %p, %a, %c; sub.{mode}.f32.{type} %q, %a, %c; fma.{mode}.f32.{type} %r, %a, %b, %c;"
    lines += f"add.{mode}.sat.f32.{type} %s, %a, %c; fma.{mode}.sat.f32.{type} %t, %a, %b, %c;"
    got = evaluate(lines, {"a": a, "b": b, "c": c}, dict.fromkeys("pqrst", "float32"))
    x, y = (v.view(dtype).astype(np.float32) for v in (a, b))
    wanted = {"p": reference("add", mode, "float32", x, c), "q": reference("sub", mode, "float32", x, c),
              "r": reference("fma", mode, "float32", x, y, c)}  # fmt: skip
    for name, results in wanted.items():
        same_bits(got[name], results, x, y, c)
    same_bits(got["s"], saturated(wanted["p"]), x, c)
    same_bits(got["t"], saturated(wanted["r"]), x, y, c)


@pytest.mark.parametrize("mode", MODES)
def test_pairs_of_floats(mode: str) -> None:
    a, b = (np.resize(column, len(column) // 2 * 2) for column in floats("float32"))
    c = np.roll(a, 5)
    words = {name: v.view(np.uint64) for name, v in (("a", a), ("b", b), ("c", c))}
    ops = {"add": "%a, %b", "sub": "%a, %b", "mul": "%a, %b", "fma": "%a, %b, %c"}
    lines = "".join(
        f"{op}.{mode}.f32x2 %{op}, {args}; {op}.{mode}.ftz.f32x2 %z{op}, {args};" for op, args in ops.items()
    )
    got = evaluate(lines, words, {f"{z}{op}": "uint64" for op in ops for z in ("", "z")})
    for op in ops:
        given = (a, b, c) if op == "fma" else (a, b)
        same_bits(got[op].view(np.float32), reference(op, mode, "float32", *given), *given)
        kept = reference(op, mode, "float32", *(flushed(v) for v in given))
        same_bits(got[f"z{op}"].view(np.float32), flushed(kept), *given)


def choose(op: str, values: tuple[float, ...], *, nan: bool) -> float:
    numbers = [v for v in values if not math.isnan(v)]
    if not numbers or (nan and len(numbers) < len(values)):
        return math.nan
    return (min if op == "min" else max)(numbers, key=lambda v: (v, math.copysign(1, v)))


@pytest.mark.parametrize("op", ["min", "max"])
def test_three_inputs(op: str) -> None:
    a, b, c = floats("float32", 3)
    kinds = list(itertools.product(("", ".ftz"), ("", ".NaN"), ("", ".abs")))
    lines = [f"{op}{''.join(kind)}.f32 %r{k}, %a, %b, %c;" for k, kind in enumerate(kinds)]
    got = evaluate("".join(lines), {"a": a, "b": b, "c": c}, {f"r{k}": "float32" for k in range(len(kinds))})
    for k, (ftz, nan, size) in enumerate(kinds):
        given = [flushed(v) if ftz else v for v in (a, b, c)]
        given = [np.abs(v) if size else v for v in given]
        rows = zip(*(v.tolist() for v in given), strict=True)
        same_bits(got[f"r{k}"], np.array([choose(op, row, nan=bool(nan)) for row in rows], np.float32), a, b, c)


@pytest.mark.parametrize("op", ["min", "max"])
@pytest.mark.parametrize(("type", "dtype"), HALVES)
def test_order_of_halves(type: str, dtype: Any, op: str) -> None:
    values = half_values(dtype)
    a, b = (column.reshape(-1) for column in np.meshgrid(values.view(np.uint16), values.view(np.uint16)))
    lines = f"{op}.{type} %p, %a, %b; {op}.NaN.{type} %q, %a, %b; {op}.xorsign.abs.{type} %r, %a, %b;"
    lines += f"{op}.NaN.xorsign.abs.{type} %s, %a, %b;"
    got = evaluate(lines, {"a": a, "b": b}, dict.fromkeys("pqrs", "uint16"))
    with np.errstate(invalid="ignore"):
        x, y = (v.view(dtype).astype(float).tolist() for v in (a, b))
    minus = (a ^ b) & 0x8000
    for name, nan, size in (("p", False, False), ("q", True, False), ("r", False, True), ("s", True, True)):
        pairs = [(abs(v), abs(w)) if size else (v, w) for v, w in zip(x, y, strict=True)]
        chosen = np.array([choose(op, pair, nan=nan) for pair in pairs])
        bits = np.where(np.isnan(chosen), 0x7FFF, chosen.astype(dtype).view(np.uint16))
        wanted = np.where(np.isnan(chosen), bits, bits | minus) if size else bits
        np.testing.assert_array_equal(got[name], wanted, name)


def test_halves_flushed_and_saturated() -> None:
    values = half_values(np.float16)
    a, b = (column.reshape(-1) for column in np.meshgrid(values.view(np.uint16), values.view(np.uint16)))
    c = np.roll(a, 11)
    lines = "add.ftz.f16 %p, %a, %b; mul.ftz.sat.f16 %q, %a, %b; fma.rn.ftz.relu.f16 %r, %a, %b, %c;"
    lines += "sub.sat.f16 %s, %a, %b; neg.ftz.f16 %t, %a; abs.ftz.f16 %u, %a;"
    got = evaluate(lines, {"a": a, "b": b, "c": c}, dict.fromkeys("pqrstu", "uint16"))

    def zeroed(v: Array) -> Array:
        return np.where(v & 0x7C00 == 0, v & 0x8000, v).astype(np.uint16)

    def single(v: Array) -> Array:
        with np.errstate(invalid="ignore"):
            return v.view(np.float16).astype(float)

    def check(name: str, function: Callable[..., Array], *given: Array, flush: bool = True) -> None:
        numbers = [single(zeroed(v) if flush else v) for v in given]
        with np.errstate(all="ignore"):
            exact = function(*numbers)
        usual = np.isfinite(exact) & np.all([np.isfinite(v) for v in numbers], axis=0)
        bits = (
            np.array([odd_round(Fraction(v), np.float16) for v in exact[usual].tolist()])
            .astype(np.float16)
            .view(np.uint16)
        )
        np.testing.assert_array_equal((got[name][usual] & 0x7FFF), (zeroed(bits) if flush else bits) & 0x7FFF, name)

    check("p", np.add, a, b)
    check("q", lambda v, w: np.clip(v * w, 0, 1), a, b)
    check("r", lambda v, w, z: np.maximum(v * w + z, 0), a, b, c)
    check("s", lambda v, w: np.clip(v - w, 0, 1), a, b, flush=False)
    number = ~np.isnan(single(a))
    np.testing.assert_array_equal(got["t"][number], zeroed(a)[number] ^ 0x8000)
    np.testing.assert_array_equal(got["u"][number], zeroed(a)[number] & 0x7FFF)
    assert (got["q"] & 0x8000 == 0).all()
    assert (got["s"] & 0x8000 == 0).all()


@pytest.mark.parametrize(("type", "dtype"), HALVES)
def test_out_of_bounds_makes_zero(type: str, dtype: Any) -> None:
    """Of a factor that is the NaN of a tensor copy's fill, of either sign; no other NaN is it, and a summand is not."""
    nans = [*range(0x7FF0, 0x8000), *range(0xFFF0, 0x10000), 0x7F81, 0x7E00, 0x7EFF]
    values = np.array([*nans, *half_values(dtype).view(np.uint16)[::5]], np.uint16)
    a, b = (column.reshape(-1).astype(np.uint16) for column in np.meshgrid(values, values))
    c = np.resize(np.concatenate([values, values[::-1]]), len(a)).astype(np.uint16)
    ops = {"d": "", "r": ".relu"}
    lines = "".join(f"fma.rn.oob{mod}.{type} %{k}, %a, %b, %c; fma.rn{mod}.{type} %p{k}, %a, %b, %c;"
                    for k, mod in ops.items())  # fmt: skip
    lines += ".reg .b32 %u, %v, %w; mov.b32 %u, {%a, %b}; mov.b32 %v, {%b, %c}; mov.b32 %w, {%c, %a};"
    lines += f"fma.rn.oob.relu.{type}x2 %x, %u, %v, %w;"
    got = evaluate(lines.replace("%pd", "%q").replace("%pr", "%s"), {"a": a, "b": b, "c": c},
                   dict.fromkeys("drqs", "uint16") | {"x": "uint32"})  # fmt: skip
    outside = np.isin(a & 0x7FFF, 0x7FF7) | np.isin(b & 0x7FFF, 0x7FF7)
    assert outside.any()
    for oob, plain in (("d", "q"), ("r", "s")):
        np.testing.assert_array_equal(got[oob], np.where(outside, 0, got[plain]))
    np.testing.assert_array_equal(got["x"] & 0xFFFF, got["r"])
    assert (got["x"][np.isin(b & 0x7FFF, 0x7FF7) | np.isin(c & 0x7FFF, 0x7FF7)] >> 16 == 0).all()
