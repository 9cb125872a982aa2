"""Integer arithmetic, logic, shifts and bit instructions against Python's integers, at values where they go wrong."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable

import numpy as np
import pytest

from tests.devices.cpu.kit import Array, Rig, evaluate, pairs

pytestmark = pytest.mark.unit

WIDTHS = [("u16", "uint16"), ("s16", "int16"), ("u32", "uint32"), ("s32", "int32"), ("u64", "uint64"), ("s64", "int64")]


def check(result: Array, expected: Callable[..., int], *args: Array) -> None:
    """Compare with a function of Python integers, wrapped to the result's type."""
    bits = 8 * result.dtype.itemsize
    wanted = [expected(*(int(v) for v in row)) & (1 << bits) - 1 for row in zip(*args, strict=True)]
    got = result.view(f"uint{bits}").tolist()
    bad = [(row, g, w) for row, g, w in zip(zip(*args, strict=True), got, wanted, strict=True) if g != w]
    assert not bad, bad[:5]


def truncated(a: int, b: int) -> int:
    """C's quotient, all ones for a zero divisor."""
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@pytest.mark.parametrize(("type", "dtype"), WIDTHS)
def test_arithmetic_of_two(type: str, dtype: str) -> None:
    a, b = pairs(dtype)
    bits = int(type[1:])
    ops: dict[str, Callable[[int, int], int]] = {
        "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul.lo": lambda x, y: x * y,
        "mul.hi": lambda x, y: x * y >> bits, "div": truncated,
        "rem": lambda x, y: x - truncated(x, y) * y if y else -1, "min": min, "max": max,
    }  # fmt: skip
    lines = "\n".join(f"{op}.{type} %r{k}, %a, %b;" for k, op in enumerate(ops))
    results = evaluate(lines, {"a": a, "b": b}, {f"r{k}": dtype for k in range(len(ops))})
    for k, function in enumerate(ops.values()):
        check(results[f"r{k}"], function, a, b)


@pytest.mark.parametrize(("type", "dtype"), WIDTHS)
def test_arithmetic_of_three(type: str, dtype: str) -> None:
    a, b, c = pairs(dtype, count=3)
    bits = int(type[1:])
    ops: dict[str, Callable[[int, int, int], int]] = {
        "mad.lo": lambda x, y, z: x * y + z,
        "mad.hi": lambda x, y, z: (x * y >> bits) + z,
        "sad": lambda x, y, z: abs(x - y) + z,
    }
    lines = "\n".join(f"{op}.{type} %r{k}, %a, %b, %c;" for k, op in enumerate(ops))
    results = evaluate(lines, {"a": a, "b": b, "c": c}, {f"r{k}": dtype for k in range(len(ops))})
    for k, function in enumerate(ops.values()):
        check(results[f"r{k}"], function, a, b, c)


@pytest.mark.parametrize(("type", "dtype", "wide"), [
    ("u16", "uint16", "uint32"), ("s16", "int16", "int32"), ("u32", "uint32", "uint64"), ("s32", "int32", "int64"),
])  # fmt: skip
def test_wide_products(type: str, dtype: str, wide: str) -> None:
    a, b = pairs(dtype)
    c = (np.arange(len(a), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)).astype(wide)
    results = evaluate(
        f"mul.wide.{type} %p, %a, %b; mad.wide.{type} %q, %a, %b, %c;", {"a": a, "b": b, "c": c}, {"p": wide, "q": wide}
    )
    check(results["p"], lambda x, y, _z: x * y, a, b, c)
    check(results["q"], lambda x, y, z: x * y + z, a, b, c)


def test_saturating_and_signs() -> None:
    a, b = pairs("int32")
    low, high = -(2**31), 2**31 - 1
    results = evaluate(
        "add.sat.s32 %p, %a, %b; sub.sat.s32 %q, %a, %b; mad.hi.sat.s32 %m, %a, %b, %a;"
        "neg.s32 %n, %a; abs.s32 %z, %a; min.relu.s32 %u, %a, %b;",
        {"a": a, "b": b}, dict.fromkeys("pqmnzu", "int32"),
    )  # fmt: skip
    check(results["p"], lambda x, y: max(low, min(high, x + y)), a, b)
    check(results["q"], lambda x, y: max(low, min(high, x - y)), a, b)
    check(results["m"], lambda x, y: max(low, min(high, (x * y >> 32) + x)), a, b)
    check(results["n"], lambda x, _y: -x, a, b)
    check(results["z"], lambda x, _y: abs(x), a, b)
    check(results["u"], lambda x, y: max(0, min(x, y)), a, b)


def test_24_bit_products() -> None:
    a, b = pairs("int32")
    results = evaluate(
        "mul24.lo.s32 %p, %a, %b; mul24.hi.s32 %q, %a, %b; mad24.lo.u32 %r, %a, %b, %b; mul24.hi.u32 %s, %a, %b;",
        {"a": a, "b": b}, dict.fromkeys("pqrs", "int32"),
    )  # fmt: skip

    def s24(x: int) -> int:
        x &= 0xFFFFFF
        return x - (1 << 24) if x >> 23 else x

    check(results["p"], lambda x, y: s24(x) * s24(y), a, b)
    check(results["q"], lambda x, y: s24(x) * s24(y) >> 16, a, b)
    check(results["r"], lambda x, y: (x & 0xFFFFFF) * (y & 0xFFFFFF) + y, a, b)
    check(results["s"], lambda x, y: (x & 0xFFFFFF) * (y & 0xFFFFFF) >> 16, a, b)


def test_carries_make_a_128_bit_sum_and_product() -> None:
    a, b = pairs("uint64")
    c, d = a[::-1].copy(), b[::-1].copy()
    results = evaluate(
        "add.cc.u64 %lo, %a, %b; addc.u64 %hi, %c, %d; sub.cc.u64 %dl, %a, %b; subc.u64 %dh, %c, %d;"
        "mul.lo.u64 %pl, %a, %b; mad.lo.cc.u64 %ml, %a, %b, %c; madc.hi.u64 %mh, %a, %b, %d;",
        {"a": a, "b": b, "c": c, "d": d}, dict.fromkeys(("lo", "hi", "dl", "dh", "pl", "ml", "mh"), "uint64"),
    )  # fmt: skip
    check(results["lo"], lambda x, y, _z, _w: x + y, a, b, c, d)
    check(results["hi"], lambda x, y, z, w: z + w + (x + y >> 64), a, b, c, d)
    check(results["dh"], lambda x, y, z, w: z - w - (x < y), a, b, c, d)
    check(results["ml"], lambda x, y, z, _w: x * y + z, a, b, c, d)
    check(results["mh"], lambda x, y, z, w: (x * y >> 64) + w + ((x * y & 2**64 - 1) + z >> 64), a, b, c, d)


def test_a_borrow_is_a_carry_that_is_missing() -> None:
    """A chain of both kinds, as GPUs have it."""
    a, b = pairs("uint32")
    lines = "sub.cc.u32 %x, %a, %b; addc.cc.u32 %y, %a, %b; subc.u32 %z, %a, %b;"
    results = evaluate(lines, {"a": a, "b": b}, dict.fromkeys("xyz", "uint32"))
    check(results["y"], lambda x, y: x + y + (x >= y), a, b)
    check(results["z"], lambda x, y: x - y - (x + y + (x >= y) < 1 << 32), a, b)


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_shifts_hold_at_the_width(bits: int) -> None:
    a, _ = pairs(f"uint{bits}")
    amount = np.resize(np.array([0, 1, 5, bits - 1, bits, bits + 1, 255, 2**31, 2**32 - 1], np.uint32), len(a))
    signed = a.view(f"int{bits}")
    results = evaluate(
        f"shl.b{bits} %l, %a, %n; shr.u{bits} %r, %a, %n; shr.s{bits} %s, %a, %n; shl.b{bits} %k, %a, 3;"
        f"shr.s{bits} %t, %a, {bits + 7};",
        {"a": a, "n": amount}, dict.fromkeys("lrskt", f"uint{bits}"),
    )  # fmt: skip
    check(results["l"], lambda x, n: x << n if n < bits else 0, a, amount)
    check(results["r"], lambda x, n: x >> n if n < bits else 0, a, amount)
    check(results["s"], lambda x, n: x >> min(n, bits - 1), signed, amount)
    check(results["k"], lambda x, _n: x << 3, a, amount)
    check(results["t"], lambda x, _n: x >> bits - 1, signed, amount)


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_logic(bits: int) -> None:
    a, b = pairs(f"uint{bits}")
    t = f"b{bits}"
    results = evaluate(
        f"and.{t} %p, %a, %b; or.{t} %q, %a, %b; xor.{t} %r, %a, %b; not.{t} %n, %a; cnot.{t} %c, %a;",
        {"a": a, "b": b}, dict.fromkeys("pqrnc", f"uint{bits}"),
    )  # fmt: skip
    check(results["p"], lambda x, y: x & y, a, b)
    check(results["q"], lambda x, y: x | y, a, b)
    check(results["r"], lambda x, y: x ^ y, a, b)
    check(results["n"], lambda x, _y: ~x, a, b)
    check(results["c"], lambda x, _y: int(x == 0), a, b)


def test_every_lop3_table() -> None:
    rng = np.random.default_rng(3)
    a, b, c = (rng.integers(0, 2**32, 64, dtype=np.uint64).astype(np.uint32) for _ in range(3))
    tables = list(range(256))
    lines = "\n".join(f"lop3.b32 %t, %a, %b, %c, {k}; mad.lo.u32 %h, %h, 31, %t;" for k in tables)
    result = evaluate(lines, {"a": a, "b": b, "c": c, "h": np.zeros(64, np.uint32)}, {"h": "uint32", "t": "uint32"})

    def reference(x: int, y: int, z: int) -> int:
        total = 0
        for table in tables:
            value = 0
            for bit in range(8):
                if table >> bit & 1:
                    value |= (x if bit & 4 else ~x) & (y if bit & 2 else ~y) & (z if bit & 1 else ~z)
            total = total * 31 + value & 2**32 - 1
        return total

    check(result["h"], reference, a, b, c)


@pytest.mark.parametrize("bits", [32, 64])
def test_counting(bits: int) -> None:
    a, _ = pairs(f"uint{bits}")
    signed = a.view(f"int{bits}")
    t = f"b{bits}"
    results = evaluate(
        f"popc.{t} %p, %a; clz.{t} %c, %a; brev.{t} %v, %a; bfind.u{bits} %f, %a; bfind.s{bits} %g, %a;"
        f"bfind.shiftamt.u{bits} %h, %a;",
        {"a": a}, {"p": "uint32", "c": "uint32", "v": f"uint{bits}", "f": "uint32", "g": "uint32", "h": "uint32"},
    )  # fmt: skip
    check(results["p"], lambda x: x.bit_count(), a)
    check(results["c"], lambda x: bits - x.bit_length(), a)
    check(results["v"], lambda x: int(f"{x:0{bits}b}"[::-1], 2), a)
    check(results["f"], lambda x: x.bit_length() - 1, a)
    check(results["g"], lambda x: (x if x >= 0 else ~x).bit_length() - 1, signed)
    check(results["h"], lambda x: bits - x.bit_length() if x else -1, a)


def held(value: int, bits: int) -> int:
    """A position or length: 8 bits of it, or in a 64-bit form at most 255, as GPUs do what the ISA leaves open."""
    return value & 255 if bits == 32 else min(value, 255)


def bit_field(x: int, start: int, length: int, bits: int, signed: bool) -> int:
    """bfe as the ISA's loop has it."""
    pos, count = held(start, bits), held(length, bits)
    sign = 0 if not signed or count == 0 else x >> min(pos + count - 1, bits - 1) & 1
    result = 0
    for k in range(bits):
        bit = x >> pos + k & 1 if k < count and pos + k < bits else sign
        result |= bit << k
    return result


@pytest.mark.parametrize("bits", [32, 64])
def test_bit_fields(bits: int) -> None:
    a, b = pairs(f"uint{bits}")
    rng = np.random.default_rng(5)
    start = np.resize(np.array([0, 1, 8, 31, 32, 33, 63, 64, 200, 256 + 4], np.uint32), len(a))
    length = rng.permutation(np.resize(np.array([0, 1, 7, 8, 31, 32, 33, 64, 255, 256], np.uint32), len(a)))
    results = evaluate(
        f"bfe.u{bits} %u, %a, %s, %n; bfe.s{bits} %v, %a, %s, %n; bfi.b{bits} %i, %a, %b, %s, %n;",
        {"a": a, "b": b, "s": start, "n": length}, dict.fromkeys("uvi", f"uint{bits}"),
    )  # fmt: skip

    def insert(x: int, y: int, s: int, n: int) -> int:
        s, n = held(s, bits), held(n, bits)
        for k in range(n):
            if s + k < bits:
                y = y & ~(1 << s + k) | (x >> k & 1) << s + k
        return y

    check(results["u"], lambda x, _y, s, n: bit_field(x, s, n, bits, False), a, b, start, length)
    check(results["v"], lambda x, _y, s, n: bit_field(x, s, n, bits, True), a, b, start, length)
    check(results["i"], insert, a, b, start, length)


def test_prmt_in_every_mode() -> None:
    rng = np.random.default_rng(6)
    a, b, c = (rng.integers(0, 2**32, 256, dtype=np.uint64).astype(np.uint32) for _ in range(3))
    modes = ["", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"]
    lines = "\n".join(f"prmt.b32{mode} %r{k}, %a, %b, %c;" for k, mode in enumerate(modes))
    results = evaluate(lines, {"a": a, "b": b, "c": c}, {f"r{k}": "uint32" for k in range(len(modes))})
    picks = {
        ".f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
        ".b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
        ".rc8": ((0,) * 4, (1,) * 4, (2,) * 4, (3,) * 4),
        ".ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
        ".ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
        ".rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
    }

    def reference(mode: str) -> Callable[[int, int, int], int]:
        def function(x: int, y: int, z: int) -> int:
            pool = (y << 32 | x).to_bytes(8, "little")
            if mode:
                return int.from_bytes(bytes(pool[p] for p in picks[mode][z & 3]), "little")
            out = []
            for k in range(4):
                n = z >> 4 * k & 15
                byte = pool[n & 7]
                out.append((255 if byte & 128 else 0) if n & 8 else byte)
            return int.from_bytes(bytes(out), "little")

        return function

    for k, mode in enumerate(modes):
        check(results[f"r{k}"], reference(mode), a, b, c)


def test_funnel_shifts_and_masks() -> None:
    a, b, c = pairs("uint32", count=3)
    results = evaluate(
        "shf.l.wrap.b32 %p, %a, %b, %c; shf.r.wrap.b32 %q, %a, %b, %c; shf.l.clamp.b32 %r, %a, %b, %c;"
        "shf.r.clamp.b32 %s, %a, %b, %c; bmsk.clamp.b32 %t, %a, %b; bmsk.wrap.b32 %u, %a, %b;"
        "szext.clamp.s32 %v, %a, %b; szext.wrap.u32 %w, %a, %b;",
        {"a": a, "b": b, "c": c}, dict.fromkeys("pqrstuvw", "uint32"),
    )  # fmt: skip

    def extend(x: int, n: int, signed: bool) -> int:
        if n == 0:
            return 0
        x &= (1 << n) - 1
        return x - (1 << n) if signed and x >> n - 1 else x

    check(results["p"], lambda x, y, z: (y << 32 | x) << (z & 31) >> 32, a, b, c)
    check(results["q"], lambda x, y, z: (y << 32 | x) >> (z & 31), a, b, c)
    check(results["r"], lambda x, y, z: (y << 32 | x) << min(z, 32) >> 32, a, b, c)
    check(results["s"], lambda x, y, z: (y << 32 | x) >> min(z, 32), a, b, c)
    check(results["t"], lambda x, y, _z: (1 << min(y, 64)) - 1 << min(x, 64), a, b, c)
    check(results["u"], lambda x, y, _z: (1 << (y & 31)) - 1 << (x & 31), a, b, c)
    check(results["v"], lambda x, y, _z: extend(x, min(y, 32), True), a, b, c)
    check(results["w"], lambda x, y, _z: extend(x, y & 31, False), a, b, c)


def test_dot_products_of_bytes() -> None:
    a, b, c = pairs("uint32", count=3)
    results = evaluate(
        "dp4a.u32.u32 %p, %a, %b, %c; dp4a.s32.u32 %q, %a, %b, %c; dp2a.lo.s32.s32 %r, %a, %b, %c;"
        "dp2a.hi.u32.s32 %s, %a, %b, %c;",
        {"a": a, "b": b, "c": c}, dict.fromkeys("pqrs", "uint32"),
    )  # fmt: skip

    def field(x: int, k: int, width: int, signed: bool) -> int:
        value = x >> k * width & (1 << width) - 1
        return value - (1 << width) if signed and value >> width - 1 else value

    def dp4(x: int, y: int, z: int, s: bool, t: bool) -> int:
        return z + sum(field(x, k, 8, s) * field(y, k, 8, t) for k in range(4))

    def dp2(x: int, y: int, z: int, s: bool, t: bool, skip: int) -> int:
        return z + sum(field(x, k, 16, s) * field(y, k + skip, 8, t) for k in range(2))

    check(results["p"], lambda x, y, z: dp4(x, y, z, False, False), a, b, c)
    check(results["q"], lambda x, y, z: dp4(x, y, z, True, False), a, b, c)
    check(results["r"], lambda x, y, z: dp2(x, y, z, True, True, 0), a, b, c)
    check(results["s"], lambda x, y, z: dp2(x, y, z, False, True, 2), a, b, c)


def test_fns_finds_the_nth_set_bit() -> None:
    masks = np.array([0, 1, 0x80000000, 0xFFFFFFFF, 0x0F0F0F0F, 0x12345678], np.uint32)
    bases = np.array([0, 1, 5, 17, 31], np.uint32)
    offsets = np.array([0, 1, 2, 5, -1, -2, -5, 33], np.int32)
    m, s, n = (g.reshape(-1) for g in np.meshgrid(masks, bases, offsets))
    results = evaluate("fns.b32 %d, %m, %s, %n;", {"m": m, "s": s, "n": n}, {"d": "uint32"})

    def reference(mask: int, base: int, offset: int) -> int:
        if offset == 0:
            return base if mask >> base & 1 else -1
        pos, count, step = base, abs(offset) - 1, 1 if offset > 0 else -1
        while count >= 0 and 0 <= pos < 32:
            if mask >> pos & 1:
                if count == 0:
                    return pos
                count -= 1
            pos += step
        return -1

    check(results["d"], reference, m, s, n)


def test_pairs_of_halves() -> None:
    a, b = pairs("uint32")
    results = evaluate(
        "add.u16x2 %p, %a, %b; min.s16x2 %q, %a, %b; max.u16x2 %r, %a, %b; max.relu.s16x2 %s, %a, %b;",
        {"a": a, "b": b}, dict.fromkeys("pqrs", "uint32"),
    )  # fmt: skip
    ua, ub, sa, sb = a.view("uint16"), b.view("uint16"), a.view("int16"), b.view("int16")
    np.testing.assert_array_equal(results["p"].view("uint16"), ua + ub)
    np.testing.assert_array_equal(results["q"].view("int16"), np.minimum(sa, sb))
    np.testing.assert_array_equal(results["r"].view("uint16"), np.maximum(ua, ub))
    np.testing.assert_array_equal(results["s"].view("int16"), np.maximum(np.maximum(sa, sb), 0))


@pytest.mark.parametrize("type", ["u16x2", "s16x2", "u8x4", "s8x4", "u32"])
def test_sums_of_parts_are_held_to_their_range(type: str) -> None:
    a, b = pairs("uint32")
    part = type.partition("x")[0]
    lines = f"add.sat.{type} %p, %a, %b;"
    if part.endswith("8"):
        lines += f"sub.sat.{type} %q, %a, %b; add.{type} %r, %a, %b; sub.{type} %s, %a, %b;"
    results = evaluate(lines, {"a": a, "b": b}, dict.fromkeys("pqrs"[: 4 if part.endswith("8") else 1], "uint32"))
    dtype = np.dtype(f"{'int' if part[0] == 's' else 'uint'}{part[1:]}")
    x, y = (v.view(dtype).astype(np.int64) for v in (a, b))
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    for name, exact in (("p", x + y), ("q", x - y), ("r", x + y), ("s", x - y)):
        if name in results:
            held = np.clip(exact, low, high) if name in "pq" else exact
            np.testing.assert_array_equal(results[name].view(dtype), held.astype(dtype))


def test_bytes_in_order_and_their_signs() -> None:
    a, b = pairs("uint32")
    results = evaluate(
        "min.u8x4 %p, %a, %b; max.u8x4 %q, %a, %b; min.s8x4 %r, %a, %b; max.relu.s8x4 %s, %a, %b; neg.s8x4 %t, %a;",
        {"a": a, "b": b}, dict.fromkeys("pqrst", "uint32"),
    )  # fmt: skip
    ua, ub, sa, sb = a.view("uint8"), b.view("uint8"), a.view("int8"), b.view("int8")
    np.testing.assert_array_equal(results["p"].view("uint8"), np.minimum(ua, ub))
    np.testing.assert_array_equal(results["q"].view("uint8"), np.maximum(ua, ub))
    np.testing.assert_array_equal(results["r"].view("int8"), np.minimum(sa, sb))
    np.testing.assert_array_equal(results["s"].view("int8"), np.maximum(np.maximum(sa, sb), 0))
    np.testing.assert_array_equal(results["t"].view("uint8"), (-ua.astype(int)).astype(np.uint8))


def test_products_without_carries() -> None:
    a, b, c = pairs("uint64", count=3)
    results = evaluate("clmad.lo.u64 %p, %a, %b, %c; clmad.hi.u64 %q, %a, %b, %c; clmad.hi.u64 %r, %a, 3, 5;",
                       {"a": a, "b": b, "c": c}, dict.fromkeys("pqr", "uint64"))  # fmt: skip

    def product(x: int, y: int) -> int:
        return functools.reduce(operator.xor, (x << k for k in range(64) if y >> k & 1), 0)

    check(results["p"], lambda x, y, z: product(x, y) % 2**64 ^ z, a, b, c)
    check(results["q"], lambda x, y, z: product(x, y) >> 64 ^ z, a, b, c)
    check(results["r"], lambda x: (x >> 63) ^ 5, a)


def test_comparisons_and_selection() -> None:
    a, b = pairs("int32")
    cmps = ["eq", "ne", "lt", "le", "gt", "ge"]
    lines = []
    for k, cmp in enumerate(cmps):
        lines.append(f"setp.{cmp}.s32 %p0, %a, %b; selp.s32 %s{k}, 1, 0, %p0;")
        lines.append(f"setp.{cmp}.u32 %p1|%p2, %a, %b; selp.s32 %u{k}, 3, 4, %p2;")
        lines.append(f"set.{cmp}.and.s32.s32 %t{k}, %a, %b, %p1;")
    lines.append("slct.s32.s32 %z, %a, 77, %b; setp.lo.or.u32 %p3, %a, %b, !%p0; selp.s32 %y, %a, %b, %p3;")
    names = {f"{kind}{k}": "int32" for kind in "sut" for k in range(6)} | {"z": "int32", "y": "int32"}
    results = evaluate("\n".join(lines), {"a": a, "b": b}, names)
    ua, ub = a.view("uint32"), b.view("uint32")
    functions = [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal]
    for k, function in enumerate(functions):
        np.testing.assert_array_equal(results[f"s{k}"], function(a, b).astype(int))
        np.testing.assert_array_equal(results[f"u{k}"], np.where(function(ua, ub), 4, 3))
        np.testing.assert_array_equal(results[f"t{k}"], np.where(function(a, b) & function(ua, ub), -1, 0))
    np.testing.assert_array_equal(results["z"], np.where(b >= 0, a, 77))
    np.testing.assert_array_equal(results["y"], np.where((ua < ub) | ~(a >= b), a, b))


def test_least_of_64_bit_numbers_that_all_lanes_share_compiles() -> None:
    """Its intrinsic was once declared twice: by the launch loop too."""
    rig = Rig("""
.visible .entry kernel(.param .u64 memory, .param .s64 value)
{
.reg .b64 %m, %v, %w;
ld.param.u64 %m, [memory]; ld.param.s64 %v, [value]; min.s64 %w, %v, 5; st.global.u64 [%m], %w; ret;
}""")
    memory = np.zeros(1, np.int64)
    rig.run([memory, -7])
    assert memory.tolist() == [-7]
