"""atom and red: every operation and type in global, shared and generic memory, alone and contended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.devices.cpu.kit import Array, Rig, floats, pairs

pytestmark = pytest.mark.unit

_REGISTERS = {2: "b16", 4: "b32", 8: "b64"}


def apply(op: str, place: str, type: str, memory: Array, value: Array) -> tuple[Array, Array]:
    """One operation a thread on a location of its own; memory afterwards, and what ``atom`` gave."""
    size = memory.dtype.itemsize
    held = _REGISTERS[size]
    space = {"global": ".global", "shared": ".shared", "generic": "", "window": ""}[place]
    address = {"global": "%m", "shared": "%s", "generic": "%m", "window": "%w"}[place]
    rig = Rig(f"""
.visible .entry kernel(.param .u64 memory, .param .u64 value, .param .u64 old)
{{
.reg .b64 %m, %v, %o, %s, %w, %i; .reg .b32 %t; .reg .{held} %x, %y, %z; .shared .align 16 .b8 room[8192];
mov.u32 %t, %tid.x; mul.wide.u32 %i, %t, {size};
ld.param.u64 %m, [memory]; ld.param.u64 %v, [value]; ld.param.u64 %o, [old];
add.u64 %m, %m, %i; add.u64 %v, %v, %i; add.u64 %o, %o, %i;
mov.u64 %s, room; add.u64 %s, %s, %i; cvta.shared.u64 %w, %s;
ld.global.{held} %x, [%m]; st.shared.{held} [%s], %x;
ld.global.{held} %y, [%v];
atom{space}.{op}.{type} %z, [{address}], %y;
st.global.{held} [%o], %z;
{f"ld.shared.{held} %x, [%s]; st.global.{held} [%m], %x;" if place in ("shared", "window") else ""}
ret;
}}""")
    after, old = memory.copy(), np.zeros_like(memory)
    rig.run([after, value.copy(), old], block=(len(memory),))
    rig.device.close()
    return after, old


def wraps(op: str) -> Callable[[int, int], int]:
    functions: dict[str, Callable[[int, int], int]] = {
        "add": lambda a, b: a + b, "exch": lambda _, b: b, "min": min, "max": max,
        "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
        "inc": lambda a, b: 0 if a >= b else a + 1, "dec": lambda a, b: b if a == 0 or a > b else a - 1,
    }  # fmt: skip
    return functions[op]


INTEGERS = [("add", "u32"), ("add", "s32"), ("add", "u64"), ("inc", "u32"), ("dec", "u32"), ("min", "u32"),
            ("min", "s32"), ("max", "u64"), ("min", "s64"), ("max", "s64"), ("and", "b32"), ("or", "b64"),
            ("xor", "b32"), ("exch", "b32"), ("exch", "b64")]  # fmt: skip


@pytest.mark.parametrize("place", ["global", "shared", "generic", "window"])
@pytest.mark.parametrize(("op", "type"), INTEGERS)
def test_integers(op: str, type: str, place: str) -> None:
    dtype = f"{'int' if type[0] == 's' else 'uint'}{type[1:]}"
    a, b = (column[:: len(column) // 500 + 1] for column in pairs(dtype))
    after, old = apply(op, place, type, a, b)
    np.testing.assert_array_equal(old, a)
    function, mask = wraps(op), (1 << int(type[1:])) - 1
    wanted = [function(p, q) & mask for p, q in zip(a.tolist(), b.tolist(), strict=True)]
    np.testing.assert_array_equal(after.view(f"uint{type[1:]}"), wanted)


@pytest.mark.parametrize("place", ["global", "shared", "generic", "window"])
def test_single_precision_sums_flush_subnormals_in_global_memory_only(place: str) -> None:
    a, b = (column[::3] for column in floats("float32"))
    after, old = apply("add", place, "f32", a, b)
    np.testing.assert_array_equal(old.view("uint32"), a.view("uint32"))

    def flushed(v: Array) -> Array:
        return np.where(np.abs(v) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), v), v).astype(np.float32)

    with np.errstate(all="ignore"):
        wanted = a + b if place in ("shared", "window") else flushed(flushed(a) + flushed(b))
    nan = np.isnan(wanted)
    assert (after.view("uint32")[nan] == 0x7FFFFFFF).all()
    np.testing.assert_array_equal(after.view("uint32")[~nan], wanted.view("uint32")[~nan])


def test_double_precision_sums() -> None:
    a, b = (column[::3] for column in floats("float64"))
    for place in ("global", "shared"):
        after, _ = apply("add", place, "f64", a, b)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(after, a + b)


@pytest.mark.parametrize(("type", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
@pytest.mark.parametrize("place", ["global", "shared"])
def test_halves_keep_subnormals_and_round_once(type: str, dtype: Any, place: str) -> None:
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**16, (2, 1024)).astype(np.uint16)
    with np.errstate(all="ignore"):
        a, b = (row.view(dtype).astype(np.float64) for row in bits)
        wanted = (a + b).astype(dtype).view(np.uint16)
    keep = np.isfinite(a) & np.isfinite(b)
    after, old = apply("add.noftz", place, type, bits[0], bits[1])
    np.testing.assert_array_equal(old, bits[0])
    np.testing.assert_array_equal(after[keep], wanted[keep])
    words = [row.view(np.uint32) for row in bits]
    after, old = apply("add.noftz", place, f"{type}x2", *words)
    np.testing.assert_array_equal(old, words[0])
    np.testing.assert_array_equal(after.view(np.uint16)[keep], wanted[keep])


def test_vectors_in_global_memory() -> None:
    rng = np.random.default_rng(6)
    memory, value = (rng.standard_normal((32, 8)).astype(np.float16) for _ in range(2))
    old, singles = np.zeros_like(memory), rng.standard_normal((32, 4)).astype(np.float32)
    names = ", ".join(f"%h{k}" for k in range(8))
    others = names.replace("h", "g")
    rig = Rig(f"""
.visible .entry kernel(.param .u64 memory, .param .u64 value, .param .u64 old, .param .u64 singles)
{{
.reg .b64 %m, %v, %o, %s, %i; .reg .b32 %t; .reg .b16 %h<8>, %g<8>; .reg .f32 %f<4>;
mov.u32 %t, %tid.x; mul.wide.u32 %i, %t, 16; ld.param.u64 %m, [memory]; ld.param.u64 %v, [value];
ld.param.u64 %o, [old]; ld.param.u64 %s, [singles]; add.u64 %m, %m, %i; add.u64 %v, %v, %i; add.u64 %o, %o, %i;
add.u64 %s, %s, %i;
ld.global.v4.b16 {{%h0, %h1, %h2, %h3}}, [%v]; ld.global.v4.b16 {{%h4, %h5, %h6, %h7}}, [%v+8];
atom.global.v8.f16.max.noftz {{{others}}}, [%m], {{{names}}};
st.global.v4.b16 [%o], {{%g0, %g1, %g2, %g3}}; st.global.v4.b16 [%o+8], {{%g4, %g5, %g6, %g7}};
ld.global.v4.f32 {{%f0, %f1, %f2, %f3}}, [%s];
red.global.v4.f32.add [%s], {{%f3, %f2, %f1, %f0}};
ret;
}}""")
    after, sums = memory.copy(), singles.copy()
    rig.run([after, value, old, sums])
    np.testing.assert_array_equal(old, memory)
    np.testing.assert_array_equal(after, np.maximum(memory, value))
    np.testing.assert_array_equal(sums, singles + singles[:, ::-1])


@pytest.mark.parametrize("place", ["global", "shared"])
def test_compare_and_swap_of_every_width(place: str) -> None:
    """Half of the threads find what they expect; 16 bits leave their neighbours alone."""
    for bits in (16, 32, 64):
        dtype = f"uint{bits}"
        rng = np.random.default_rng(bits)
        memory, new = (rng.integers(0, 2**bits, 64, dtype=np.uint64).astype(dtype) for _ in range(2))
        expected = np.where(np.arange(64) % 2, memory, ~memory)
        size, old = bits // 8, np.zeros_like(memory)
        address = "%s" if place == "shared" else "%m"
        rig = Rig(f"""
.visible .entry kernel(.param .u64 memory, .param .u64 expected, .param .u64 new, .param .u64 old)
{{
.reg .b64 %m, %e, %n, %o, %s, %i; .reg .b32 %t; .reg .b{bits} %x<5>; .shared .align 16 .b8 room[1024];
mov.u32 %t, %tid.x; mul.wide.u32 %i, %t, {size}; ld.param.u64 %m, [memory]; ld.param.u64 %e, [expected];
ld.param.u64 %n, [new]; ld.param.u64 %o, [old]; add.u64 %m, %m, %i; add.u64 %e, %e, %i; add.u64 %n, %n, %i;
add.u64 %o, %o, %i; mov.u64 %s, room; add.u64 %s, %s, %i;
ld.global.b{bits} %x0, [%m]; st.shared.b{bits} [%s], %x0;
ld.global.b{bits} %x1, [%e]; ld.global.b{bits} %x2, [%n];
atom.{place}.cas.b{bits} %x3, [{address}], %x1, %x2; st.global.b{bits} [%o], %x3;
ld.{place}.b{bits} %x4, [{address}]; st.global.b{bits} [%m], %x4;
ret;
}}""")
        after = memory.copy()
        rig.run([after, expected, new, old], block=(64,))
        np.testing.assert_array_equal(old, memory)
        np.testing.assert_array_equal(after, np.where(expected == memory, new, memory))


def test_a_counter_of_128_bits_is_shared_by_many_ctas() -> None:
    """Each thread adds 2**60 + 1 by a loop of compare and swap: no sum is lost, no half is torn."""
    rig = Rig("""
.visible .entry kernel(.param .u64 memory, .param .u64 other)
{
.reg .b64 %m, %o, %l, %h, %a, %b; .reg .b128 %x, %y, %z; .reg .pred %p, %q;
ld.param.u64 %m, [memory]; ld.param.u64 %o, [other];
ld.global.b128 %x, [%m];
again:
mov.b128 {%l, %h}, %x; add.cc.u64 %a, %l, 1152921504606846977; addc.u64 %b, %h, 0; mov.b128 %y, {%a, %b};
atom.global.cas.b128 %z, [%m], %x, %y;
mov.b128 {%a, %b}, %z; setp.ne.u64 %p, %a, %l; setp.ne.or.u64 %q, %b, %h, %p; mov.b128 %x, %z;
@%q bra again;
atom.global.exch.b128 %z, [%o], %x;
ret;
}""")
    memory, other = np.zeros(2, np.uint64), np.zeros(2, np.uint64)
    rig.run([memory, other], grid=(16,), block=(64,))
    assert int(memory[0]) | int(memory[1]) << 64 == 1024 * (2**60 + 1)
    last = int(other[0]) | int(other[1]) << 64
    assert last in [k * (2**60 + 1) for k in range(1024)]


def test_lanes_of_one_operation_lie_in_different_memories() -> None:
    """Every third lane in shared memory, the others by turns in two buffers, a few in none: masked off."""
    rig = Rig("""
.visible .entry kernel(.param .u64 a, .param .u64 b, .param .u64 old, .param .u64 shared)
{
.reg .pred %p, %q, %r; .reg .b64 %a, %b, %o, %s, %w, %m, %h, %i; .reg .b32 %t, %x, %y, %z; .shared .align 16 .b8 room[256];
mov.u32 %t, %tid.x; mul.wide.u32 %i, %t, 4;
ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; ld.param.u64 %o, [old]; ld.param.u64 %h, [shared];
add.u64 %a, %a, %i; add.u64 %b, %b, %i; add.u64 %o, %o, %i; add.u64 %h, %h, %i;
mov.u64 %s, room; add.u64 %s, %s, %i; cvta.shared.u64 %w, %s;
mov.b32 %x, 1000; st.shared.b32 [%s], %x;
and.b32 %y, %t, 1; setp.eq.u32 %p, %y, 0; selp.b64 %m, %a, %b, %p;
rem.u32 %y, %t, 3; setp.eq.u32 %q, %y, 0; selp.b64 %m, %w, %m, %q;
setp.eq.u32 %r, %t, 7; selp.b64 %m, 0, %m, %r; setp.ne.u32 %r, %t, 7;
mov.b32 %z, 77;
@%r atom.add.u32 %z, [%m], %t;
st.global.b32 [%o], %z; ld.shared.b32 %x, [%s]; st.global.b32 [%h], %x;
ret;
}""")
    thread = np.arange(40, dtype=np.uint32)
    a, b, old, shared = thread + 100, thread + 200, np.zeros(40, np.uint32), np.zeros(40, np.uint32)
    rig.run([a, b, old, shared], block=(40,))
    rig.device.close()
    in_shared, acts = thread % 3 == 0, thread != 7
    in_a, in_b = ~in_shared & (thread % 2 == 0), ~in_shared & (thread % 2 == 1)
    np.testing.assert_array_equal(a, thread + 100 + np.where(in_a & acts, thread, 0))
    np.testing.assert_array_equal(b, thread + 200 + np.where(in_b & acts, thread, 0))
    np.testing.assert_array_equal(shared, 1000 + np.where(in_shared & acts, thread, 0))
    before = np.where(in_shared, 1000, np.where(in_a, thread + 100, thread + 200))
    before[7] = 77
    np.testing.assert_array_equal(old, before)


def test_contended_sums_lose_nothing() -> None:
    rig = Rig("""
.visible .entry kernel(.param .u64 memory, .param .u64 seen)
{
.reg .b64 %m, %s, %i; .reg .b32 %t, %c, %n, %v; .reg .f32 %f;
ld.param.u64 %m, [memory]; ld.param.u64 %s, [seen]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %n, %ntid.x;
atom.global.inc.u32 %v, [%m], 0xffffffff;
mul.wide.u32 %i, %v, 4; add.u64 %s, %s, %i; st.global.u32 [%s], 1;
red.relaxed.gpu.global.add.f32 [%m+4], 0f3F800000;
red.global.max.u32 [%m+8], %v; red.global.xor.b32 [%m+12], %v;
ret;
}""")
    memory, seen = np.zeros(4, np.uint32), np.zeros(4096, np.uint32)
    rig.run([memory, seen], grid=(32,), block=(128,))
    assert seen.all()
    assert memory.tolist() == [4096, int(np.float32(4096).view(np.uint32)), 4095, 0]
