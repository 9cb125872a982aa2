"""Control flow by mask: divergence, loops, early exits, irreducible graphs, tables, calls; odd blocks and grids."""

from __future__ import annotations

import numpy as np
import pytest

from teenycli.errors import TeenyError
from teenycli.exits import Exit
from tests.devices.cpu.kit import Rig, evaluate

pytestmark = pytest.mark.unit


def test_lanes_take_loops_of_their_own_length() -> None:
    n = np.arange(200, dtype=np.uint32) * 7 % 53
    got = evaluate(
        """
        .reg .pred %q; .reg .b32 %k; mov.u32 %k, 0; mov.u32 %s, 0;
        loop: setp.ge.u32 %q, %k, %n; @%q bra after;
        add.u32 %k, %k, 1; and.b32 %t, %k, 1; setp.eq.u32 %p0, %t, 0; @%p0 bra loop;
        add.u32 %s, %s, %k; bra loop;
        after: add.u32 %s, %s, 1000;
        """,
        {"n": n}, {"s": "uint32", "t": "uint32"},
    )  # fmt: skip
    np.testing.assert_array_equal(got["s"], [1000 + sum(k for k in range(1, int(v) + 1) if k & 1) for v in n])


def test_nested_loops_with_breaks_and_values_carried_out() -> None:
    n = np.random.default_rng(0).integers(1, 5000, 300).astype(np.uint32)
    got = evaluate(
        """
        .reg .b32 %x, %c, %odd, %three; mov.u32 %x, %n; mov.u32 %steps, 0; mov.u32 %peak, %n;
        next: setp.eq.u32 %p0, %x, 1; @%p0 bra out;
        and.b32 %odd, %x, 1; setp.ne.u32 %p1, %odd, 0; @%p1 bra isodd;
        shr.u32 %x, %x, 1; bra count;
        isodd: mad.lo.u32 %x, %x, 3, 1;
        count: add.u32 %steps, %steps, 1; max.u32 %peak, %peak, %x;
        setp.gt.u32 %p2, %steps, 60; @%p2 bra out; bra next;
        out:
        """,
        {"n": n}, {"steps": "uint32", "peak": "uint32"},
    )  # fmt: skip

    def collatz(x: int) -> tuple[int, int]:
        steps, peak = 0, x
        while x != 1 and steps <= 60:
            x = 3 * x + 1 if x & 1 else x // 2
            steps, peak = steps + 1, max(peak, x)
        return steps, peak

    wanted = [collatz(int(v)) for v in n]
    np.testing.assert_array_equal(got["steps"], [w[0] for w in wanted])
    np.testing.assert_array_equal(got["peak"], [w[1] for w in wanted])


def test_irreducible_loop_with_two_entries() -> None:
    n = np.arange(128, dtype=np.uint32)
    got = evaluate(
        """
        mov.u32 %s, 0; mov.u32 %k, %n; and.b32 %t, %n, 1; setp.eq.u32 %p0, %t, 0; @%p0 bra right;
        left: add.u32 %s, %s, 1; setp.lt.u32 %p1, %k, 3; @%p1 bra end; sub.u32 %k, %k, 3;
        right: add.u32 %s, %s, 100; setp.lt.u32 %p1, %k, 2; @%p1 bra end; sub.u32 %k, %k, 2; bra left;
        end:
        """,
        {"n": n}, {"s": "uint32", "k": "uint32", "t": "uint32"},
    )  # fmt: skip

    def walk(n: int) -> tuple[int, int]:
        s, k, left = 0, n, bool(n & 1)
        while True:
            s += 1 if left else 100
            need = 3 if left else 2
            if k < need:
                return s, k
            k, left = k - need, not left

    wanted = [walk(int(v)) for v in n]
    np.testing.assert_array_equal(got["s"], [w[0] for w in wanted])
    np.testing.assert_array_equal(got["k"], [w[1] for w in wanted])


def test_branch_table_and_guarded_instructions() -> None:
    n = np.arange(100, dtype=np.uint32) % 5
    got = evaluate(
        """
        targets: .branchtargets zero, one, two, one, three;
        mov.u32 %s, 5; setp.gt.u32 %p0, %n, 2; @%p0 add.u32 %s, %s, 7; @!%p0 mov.u32 %t, 1; @%p0 mov.u32 %t, 2;
        brx.idx %n, targets;
        zero: add.u32 %s, %s, 1000; bra end;
        one: add.u32 %s, %s, 2000; bra end;
        two: add.u32 %s, %s, 3000;
        three: add.u32 %s, %s, 4000;
        end:
        """,
        {"n": n}, {"s": "uint32", "t": "uint32"},
    )  # fmt: skip
    added = {0: 1000, 1: 2000, 2: 7000, 3: 2000, 4: 4000}
    np.testing.assert_array_equal(got["s"], [5 + 7 * (v > 2) + added[int(v)] for v in n])
    np.testing.assert_array_equal(got["t"], np.where(n > 2, 2, 1))


@pytest.mark.parametrize("block", [(1,), (31,), (33,), (96,), (1024,), (8, 4), (5, 3, 7), (64, 16)])
def test_blocks_of_every_shape_and_grids_of_three_dimensions(block: tuple[int, ...]) -> None:
    rig = Rig(
        """
        .visible .entry where(.param .u64 out) {
        .reg .b32 %r<20>; .reg .b64 %d<4>;
        mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y;
        mov.u32 %r6, %ctaid.x; mov.u32 %r7, %ctaid.y; mov.u32 %r8, %ctaid.z; mov.u32 %r9, %nctaid.x;
        mov.u32 %r10, %nctaid.y; mov.u32 %r14, %ntid.z;
        mad.lo.u32 %r11, %r3, %r5, %r2; mad.lo.u32 %r11, %r11, %r4, %r1;
        mad.lo.u32 %r12, %r8, %r10, %r7; mad.lo.u32 %r12, %r12, %r9, %r6;
        mul.lo.u32 %r13, %r4, %r5; mul.lo.u32 %r13, %r13, %r14; mad.lo.u32 %r13, %r12, %r13, %r11;
        ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %r13, 16; add.u64 %d1, %d1, %d2;
        st.global.v4.u32 [%d1], {%r1, %r2, %r3, %r12}; ret; }
        """
    )
    full = (*block, 1, 1)[:3]
    threads = full[0] * full[1] * full[2]
    out = np.full((30 * threads, 4), 99, np.uint32)
    rig.run([out], grid=(5, 3, 2), block=block)
    number = np.arange(threads)
    wanted = np.stack([number % full[0], number // full[0] % full[1], number // (full[0] * full[1])], 1)
    for cta in range(30):
        np.testing.assert_array_equal(out[cta * threads : (cta + 1) * threads, :3], wanted)
        assert (out[cta * threads : (cta + 1) * threads, 3] == cta).all()


CALLS = """
.func (.param .b32 result) twice(.param .b32 x) {
.reg .b32 %r<4>; ld.param.b32 %r1, [x]; add.u32 %r2, %r1, %r1; st.param.b32 [result], %r2; ret; }
.func (.reg .b32 %out) clamp(.reg .b32 %v, .reg .b32 %top) {
.reg .pred %q; setp.lt.u32 %q, %v, %top; mov.u32 %out, %v; @%q ret; mov.u32 %out, %top; ret; }
.func (.param .align 16 .b8 pair[16]) swap(.param .align 16 .b8 from[16]) {
.reg .b64 %d<4>; ld.param.v2.b64 {%d1, %d2}, [from]; st.param.b64 [pair], %d2; st.param.b64 [pair+8], %d1; ret; }
.visible .entry calls(.param .u64 data) {
.reg .b32 %r<10>; .reg .b64 %d<10>; .reg .pred %p;
mov.u32 %r1, %tid.x; ld.param.u64 %d1, [data]; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
ld.global.u32 %r2, [%d1]; setp.gt.u32 %p, %r2, 20; @%p bra skip;
{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r2; call.uni (r), twice, (a); ld.param.b32 %r2, [r]; }
skip:
@!%p call (%r3), clamp, (%r2, 30);
@%p mov.u32 %r3, %r2;
cvt.u64.u32 %d3, %r3; add.u64 %d4, %d3, 500;
{ .param .align 16 .b8 a[16]; .param .align 16 .b8 r[16];
st.param.v2.b64 [a], {%d3, %d4}; call.uni (r), swap, (a); ld.param.v2.b64 {%d5, %d6}, [r]; }
sub.u64 %d7, %d5, %d6; cvt.u32.u64 %r4, %d7; add.u32 %r3, %r3, %r4; st.global.u32 [%d1], %r3; ret; }
"""


def test_calls_with_values_in_registers_and_in_param_space() -> None:
    data = np.arange(64, dtype=np.uint32)
    Rig(CALLS).run([data], block=(64,))
    np.testing.assert_array_equal(data, [(v if v > 20 else min(2 * v, 30)) + 500 for v in range(64)])


def test_large_kernels_keep_their_registers_in_frames() -> None:
    """More blocks than slots in SSA form are good for, every lane on a way of its own."""
    steps = "\n".join(
        f"shr.u32 %t, %n, {k % 8}; and.b32 %t, %t, 1; setp.eq.u32 %p1, %t, 1; @%p1 bra odd{k};"
        f"add.u32 %s, %s, {k + 1}; bra end{k}; odd{k}: mad.lo.u32 %s, %s, 3, {k}; end{k}:"
        for k in range(40)
    )
    n = np.arange(256, dtype=np.uint32)
    got = evaluate(f"mov.u32 %s, 0;\n{steps}", {"n": n}, {"s": "uint32", "t": "uint32"})

    def walk(v: int) -> int:
        s = 0
        for k in range(40):
            s = (s * 3 + k if v >> k % 8 & 1 else s + k + 1) & 0xFFFFFFFF
        return s

    np.testing.assert_array_equal(got["s"], [walk(int(v)) for v in n])


def test_many_ctas_on_more_threads_than_processors() -> None:
    rig = Rig(
        """
        .visible .entry count(.param .u64 total) {
        .reg .b64 %d<3>; .reg .b32 %r<4>; ld.param.u64 %d1, [total]; mov.u32 %r1, %ctaid.x; add.u32 %r1, %r1, 1;
        cvt.u64.u32 %d2, %r1; red.global.add.u64 [%d1], %d2; ret; }
        """,
        threads=5,
    )
    total = np.zeros(1, np.uint64)
    rig.run([total], grid=(10_007,), block=(3,))
    assert total[0] == 3 * 10_007 * 10_008 // 2


def test_unsupported_instruction_is_named_before_anything_runs() -> None:
    rig = Rig(
        ".visible .entry k(.param .u64 p) {\n.reg .b64 %d; .reg .b32 %r<9>;\n"
        "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [%r3];\nret; }"
    )
    with pytest.raises(TeenyError) as caught:
        rig.run([np.zeros(1, np.uint64)])
    assert caught.value.finding.id == "unsupported-instruction"
    assert caught.value.exit is Exit.UNSUPPORTED
    assert caught.value.finding.where is not None
    assert caught.value.finding.where.line == 6
    assert "ldmatrix.sync.aligned" in caught.value.finding.message
