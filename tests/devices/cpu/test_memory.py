"""Loads and stores in every space, width and pattern; atomics; module variables."""

from __future__ import annotations

import numpy as np
import pytest

from teenycli.errors import TeenyError
from tests.devices.cpu.kit import Rig

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("vec", "type", "register", "dtype"), [
    ("", "u8", "b16", "uint8"), ("", "s16", "s32", "int16"), ("", "b32", "b32", "uint32"), ("", "b64", "b64", "uint64"),
    (".v2", "u8", "b16", "uint8"), (".v4", "b32", "b32", "uint32"), (".v4", "u16", "b16", "uint16"),
    (".v2", "f64", "f64", "float64"), (".v8", "b32", "b32", "uint32"), (".v4", "b64", "b64", "uint64"),
])  # fmt: skip
@pytest.mark.parametrize("pattern", ["row", "reversed", "same", "strided"])
def test_every_width_in_every_pattern(vec: str, type: str, register: str, dtype: str, pattern: str) -> None:
    n = int(vec[2:] or 1)
    size = np.dtype(dtype).itemsize * n
    names = ", ".join(f"%x{k}" for k in range(n))
    operand = f"{{{names}}}" if vec else "%x0"
    at = {
        "row": "mov.u32 %r2, %r1;",
        "reversed": "sub.u32 %r2, 99, %r1;",
        "same": "mov.u32 %r2, 7;",
        "strided": "mul.lo.u32 %r2, %r1, 3; rem.u32 %r2, %r2, 100;",
    }[pattern]
    rig = Rig(
        f"""
        .visible .entry copy(.param .u64 from, .param .u64 to) {{
        .reg .b32 %r<4>; .reg .b64 %d<8>; .reg .{register} %x<8>; .reg .pred %p;
        mov.u32 %r1, %ctaid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, 50, %r3; setp.ge.u32 %p, %r1, 100; @%p ret;
        {at}
        ld.param.u64 %d1, [from]; ld.param.u64 %d2, [to];
        mul.wide.u32 %d3, %r2, {size}; add.u64 %d4, %d1, %d3; ld.global{vec}.{type} {operand}, [%d4];
        mul.wide.u32 %d5, %r1, {size}; add.u64 %d6, %d2, %d5; st.global{vec}.{type} [%d6], {operand}; ret; }}
        """
    )
    rng = np.random.default_rng(0)
    source = rng.integers(0, 256, 100 * size).astype(np.uint8).view(dtype)
    target = np.zeros(100 * n, dtype)
    rig.run([source, target], grid=(2,), block=(50,))
    k = np.arange(100)
    picked = {"row": k, "reversed": 99 - k, "same": k * 0 + 7, "strided": k * 3 % 100}[pattern]
    np.testing.assert_array_equal(
        target.view(np.uint8).reshape(100, size), source.view(np.uint8).reshape(100, size)[picked]
    )


def test_shared_local_and_generic_windows() -> None:
    rig = Rig(
        """
        .extern .shared .align 16 .b8 dynamic[];
        .visible .entry windows(.param .u64 out) {
        .shared .align 4 .b32 fixed[64]; .local .align 8 .b8 depot[32];
        .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .pred %p<4>;
        mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2;
        mov.u32 %r3, fixed; add.u32 %r4, %r3, %r2; st.shared.u32 [%r4], %r1;
        mov.u32 %r5, dynamic; sub.u32 %r6, 252, %r2; add.u32 %r7, %r5, %r6; mul.lo.u32 %r8, %r1, 10;
        st.shared.u32 [%r7], %r8;
        mov.u64 %d1, depot; cvta.local.u64 %d2, %d1; st.local.u32 [depot+4], %r8; st.u32 [%d2+8], %r1;
        bar.sync 0;
        xor.b32 %r9, %r1, 1; shl.b32 %r10, %r9, 2; cvt.u64.u32 %d3, %r10; mov.u64 %d4, fixed; add.u64 %d4, %d4, %d3;
        cvta.shared.u64 %d5, %d4; ld.u32 %r11, [%d5]; isspacep.shared %p1, %d5; isspacep.local %p2, %d2;
        isspacep.global %p3, %d5; selp.u32 %r12, 1, 0, %p1; @%p2 add.u32 %r12, %r12, 2; @%p3 add.u32 %r12, %r12, 4;
        cvta.to.shared.u64 %d6, %d5; ld.shared.u32 %r13, [%d6]; ld.shared.u32 %r14, [%r5];
        ld.local.v2.u32 {%r15, %r16}, [depot+8];
        ld.u32 %r17, [%d2+4];
        ld.param.u64 %d7, [out]; mul.wide.u32 %d8, %r1, 24; add.u64 %d7, %d7, %d8;
        st.global.v2.u32 [%d7], {%r11, %r12}; st.global.v2.u32 [%d7+8], {%r13, %r14};
        st.global.v2.u32 [%d7+16], {%r15, %r17};
        ret; }
        """
    )
    out = np.zeros((64, 6), np.uint32)
    rig.run([out], block=(64,), shared=256)
    k = np.arange(64)
    np.testing.assert_array_equal(out, np.stack([k ^ 1, k * 0 + 3, k ^ 1, k * 0 + 630, k, k * 10], 1))


def test_an_address_of_32_bits_wraps_where_its_offset_is_added() -> None:
    """Compilers move the constant out of ``shared[lane + 128 - step]``: what is left may lie below the window."""
    rig = Rig(
        """
        .visible .entry wrap(.param .u64 out) {
        .shared .align 8 .b8 room[1024]; .reg .b32 %r<12>; .reg .b64 %d<4>; .reg .b64 %x<3>;
        mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 3; mov.u32 %r3, room; add.u32 %r4, %r3, %r2;
        sub.u32 %r5, %r4, 64; st.shared.v2.u32 [%r5+64], {%r1, %r1};
        bar.sync 0;
        sub.u32 %r6, 248, %r2; sub.u32 %r6, %r6, 128; ld.shared.u32 %r7, [%r6+128];
        mov.u32 %r8, -8; ld.shared.u32 %r9, [%r8+24];
        sub.u32 %r10, %r4, 512; red.shared.add.u32 [%r10+516], 5; ld.shared.u32 %r11, [%r5+68];
        ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %r1, 12; add.u64 %d1, %d1, %d2;
        st.global.u32 [%d1], %r7; st.global.u32 [%d1+4], %r9; st.global.u32 [%d1+8], %r11; ret; }
        """
    )
    out = np.zeros((32, 3), np.uint32)
    rig.run([out], block=(32,))
    k = np.arange(32)
    np.testing.assert_array_equal(out, np.stack([31 - k, k * 0 + 2, k + 5], 1))


def test_below_its_window_it_still_is_a_fault() -> None:
    rig = Rig(
        """
        .visible .entry below() { .shared .align 4 .b8 room[1024]; .reg .b32 %r<4>;
        mov.u32 %r1, %tid.x; mov.u32 %r3, room; mad.lo.u32 %r1, %r1, 4, %r3; ld.shared.u32 %r2, [%r1+-4]; ret; }
        """
    )
    with pytest.raises(TeenyError, match="offset -4 of shared memory, which has 1024 bytes"):
        rig.run([], block=(32,))


def test_module_variables_hold_initial_values_and_stay_between_launches() -> None:
    rig = Rig(
        """
        .global .align 4 .u32 counter = 5; .const .align 4 .f32 table[4] = {0f3F800000, 0f40000000};
        .global .align 8 .u64 link[2] = {generic(counter), counter+4};
        .global .align 2 .u16 grid[2][3] = {{1, 2}, {3, 4, 5}};
        .visible .entry use(.param .u64 out) {
        .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<4>;
        ld.param.u64 %d1, [out]; ld.global.u32 %r1, [counter]; add.u32 %r2, %r1, 1; st.global.u32 [counter], %r2;
        st.global.u32 [%d1], %r1; ld.const.f32 %f1, [table+4]; st.global.f32 [%d1+4], %f1;
        ld.global.u64 %d2, [link]; ld.u32 %r3, [%d2]; st.global.u32 [%d1+8], %r3; ld.global.u16 %r4, [grid+8];
        st.global.u32 [%d1+12], %r4;
        ret; }
        """.replace("%r4, [grid+8]", "%r4, [grid+8]")
    )
    out = np.zeros(4, np.uint32)
    rig.run([out], block=(1,))
    np.testing.assert_array_equal(out, [5, 0x40000000, 6, 4])


def test_atomics_return_what_was_there() -> None:
    ops = {"add": "u32", "min": "s32", "max": "u32", "and": "b32", "or": "b32", "xor": "b32", "exch": "b32"}
    ops |= {"inc": "u32", "dec": "u32"}
    lines = []
    for space in ("global", "shared"):
        base = "%d1" if space == "global" else "%r5"
        for k, (op, type) in enumerate(ops.items()):
            lines.append(f"atom.{space}.{op}.{type} %r6, [{base}+{4 * k}], %r2; add.u32 %r7, %r7, %r6;")
    rig = Rig(
        f"""
        .visible .entry atomics(.param .u64 data, .param .u64 olds) {{
        .shared .align 8 .b8 room[64]; .reg .b32 %r<12>; .reg .b64 %d<6>; .reg .pred %p;
        ld.param.u64 %d1, [data]; ld.param.u64 %d2, [olds]; mov.u32 %r1, %tid.x; mad.lo.u32 %r2, %r1, 3, 1;
        mov.u32 %r5, room;
        setp.ne.u32 %p, %r1, 0; @%p bra go;
        {"".join(f"ld.global.u32 %r3, [%d1+{4 * k}]; st.shared.u32 [%r5+{4 * k}], %r3;" for k in range(len(ops)))}
        go: bar.sync 0; mov.u32 %r7, 0; {" ".join(lines)}
        mul.wide.u32 %d3, %r1, 4; add.u64 %d2, %d2, %d3; st.global.u32 [%d2], %r7;
        bar.sync 0; @%p ret;
        {"".join(f"ld.shared.u32 %r3, [%r5+{4 * k}]; st.global.u32 [%d1+{64 + 4 * k}], %r3;" for k in range(len(ops)))}
        ret; }}
        """
    )
    start = np.array([10, 50, 5, 0xFFFF, 0x10, 0x55, 7, 100, 3], np.uint32)
    data = np.zeros(32, np.uint32)
    data[:9] = start
    olds = np.zeros(40, np.uint32)
    rig.run([data, olds], block=(40,))
    cells, sums = start.astype(np.int64).tolist(), []
    for k, op in enumerate(ops):
        total = []
        for lane in range(40):
            b, old = 3 * lane + 1, cells[k]
            total.append(old)
            cells[k] = {"add": old + b, "min": min(old, b), "max": max(old, b), "and": old & b, "or": old | b,
                        "xor": old ^ b, "exch": b, "inc": 0 if old >= b else old + 1,
                        "dec": b if old == 0 or old > b else old - 1}[op]  # fmt: skip
        sums.append(total)
    np.testing.assert_array_equal(data[:9], cells)
    np.testing.assert_array_equal(data[16:25], cells)
    np.testing.assert_array_equal(olds, 2 * np.sum(sums, 0))


def test_atomics_of_wide_small_and_floating_types_from_many_ctas() -> None:
    rig = Rig(
        """
        .visible .entry sums(.param .u64 data) {
        .reg .b64 %d<6>; .reg .b32 %r<8>; .reg .f32 %f; .reg .f64 %g; .reg .b16 %h<4>; .reg .pred %p;
        ld.param.u64 %d1, [data]; mov.u32 %r1, 1; mov.f32 %f, 0f3F800000; mov.f64 %g, 0d3FE0000000000000;
        red.global.add.f32 [%d1], %f; atom.global.add.f64 %g, [%d1+8], %g; red.add.u64 [%d1+16], 3;
        mov.b32 %r2, 0x3C003C00; atom.global.add.noftz.f16x2 %r3, [%d1+24], %r2; mov.b16 %h1, 0x3F80;
        red.global.add.noftz.bf16 [%d1+28], %h1;
        again: ld.relaxed.gpu.global.u32 %r4, [%d1+32]; add.u32 %r5, %r4, 2;
        atom.global.cas.b32 %r6, [%d1+32], %r4, %r5;
        setp.ne.u32 %p, %r6, %r4; @%p bra again; atom.global.max.s64 %d2, [%d1+40], -5;
        red.global.add.v2.f32 [%d1+48], {%f, %f};
        ret; }
        """
    )
    data = np.zeros(16, np.uint32)
    data[10:12] = 0xFFFFFFFF
    data[10] = 0xFFFFFF00
    rig.run([data], grid=(20,), block=(10,))
    assert data.view(np.float32)[0] == 200
    assert data.view(np.float64)[1] == 100
    assert data.view(np.uint64)[2] == 600
    np.testing.assert_array_equal(data.view(np.float16)[12:14], [200, 200])
    assert data.view(np.uint16)[14] == 0x4348
    assert data[8] == 400
    assert data.view(np.int64)[5] == -5
    np.testing.assert_array_equal(data.view(np.float32)[12:14], [200, 200])


def test_wide_loads_sign_extend_and_narrow_stores_cut() -> None:
    rig = Rig(
        """
        .visible .entry widths(.param .u64 data, .param .s32 wide) {
        .reg .b64 %d<5>; .reg .b32 %r<5>;
        ld.param.u64 %d1, [data]; ld.global.s8 %d2, [%d1]; st.global.u64 [%d1+8], %d2; ld.param.s32 %d3, [wide];
        st.global.u64 [%d1+16], %d3; ld.global.u8 %r1, [%d1]; st.global.u32 [%d1+24], %r1; mov.u32 %r2, 0x12345678;
        st.global.u16 [%d1+28], %r2; ret; }
        """
    )
    data = np.zeros(4, np.int64)
    data.view(np.uint8)[0] = 0xF0
    rig.run([data, -7], block=(1,))
    assert data.tolist()[1:3] == [-16, -7]
    assert data.view(np.uint32)[6:].tolist() == [0xF0, 0x5678]


def test_128_bit_values() -> None:
    rig = Rig(
        """
        .visible .entry big(.param .u64 data) {
        .reg .b64 %d<6>; .reg .b128 %q; .reg .b32 %r<2>;
        ld.param.u64 %d1, [data]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 16; add.u64 %d1, %d1, %d2;
        ld.global.b128 %q, [%d1]; mov.b128 {%d3, %d4}, %q; mov.b128 %q, {%d4, %d3}; st.global.b128 [%d1], %q; ret; }
        """
    )
    data = np.arange(128, dtype=np.uint64).reshape(64, 2)
    rig.run([data], block=(64,))
    np.testing.assert_array_equal(data, np.arange(128).reshape(64, 2)[:, ::-1])


@pytest.mark.parametrize("count", [16, 64, 77])
def test_structures_read_and_written_a_member_at_a_time(count: int) -> None:
    """Lanes 16 bytes apart, all four members or two of them; backwards too; the last warp is not full."""
    rig = Rig(
        """
        .visible .entry members(.param .u64 from, .param .u64 to, .param .u64 back, .param .u32 n) {
        .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<3>;
        mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; setp.lt.u32 %p1, %r1, %r2; setp.lt.u32 %p2, %r1, 10; @!%p1 ret;
        ld.param.u64 %d1, [from]; ld.param.u64 %d2, [to]; mul.wide.u32 %d3, %r1, 16; add.u64 %d4, %d1, %d3;
        add.u64 %d5, %d2, %d3;
        ld.global.u32 %r3, [%d4]; ld.global.u32 %r4, [%d4+4]; ld.global.u32 %r5, [%d4+8]; ld.global.u32 %r6, [%d4+12];
        st.global.u32 [%d5], %r6; st.global.u32 [%d5+4], %r5; @%p2 st.global.u32 [%d5+8], %r4;
        st.global.u32 [%d5+12], %r3;
        sub.u32 %r7, %r2, %r1; sub.u32 %r7, %r7, 1; mul.wide.u32 %d6, %r7, 8; ld.param.u64 %d7, [back];
        add.u64 %d7, %d7, %d6;
        st.global.u32 [%d7], %r1; ld.global.u32 %r8, [%d7+4]; add.u32 %r8, %r8, %r3; st.global.u32 [%d7+4], %r8;
        ret; }
        """
    )
    source = np.arange(4 * count, dtype=np.uint32).reshape(count, 4)
    target = np.zeros_like(source)
    back = np.full((count, 2), 1000, np.uint32)
    rig.run([source, target, back, count], block=(96,))
    wanted = source[:, ::-1].copy()
    wanted[10:, 2] = 0
    np.testing.assert_array_equal(target, wanted)
    np.testing.assert_array_equal(back[:, 0], np.arange(count)[::-1])
    np.testing.assert_array_equal(back[:, 1], 1000 + source[::-1, 0])
