"""Barriers, shuffles, votes and the other operations of warps and CTAs."""

from __future__ import annotations

import numpy as np
import pytest

from teenycli.errors import TeenyError
from tests.devices.cpu.kit import Array, Rig

pytestmark = pytest.mark.unit


def lanes(lines: str, outputs: int, *, block: int = 64) -> Array:
    """Run ``lines`` with the thread's index in %t; registers %o0 … come back, a row a thread."""
    names = ", ".join(f"%o{k}" for k in range(outputs))
    stores = "".join(f"st.global.b32 [%kd+{4 * k}], %o{k};" for k in range(outputs))
    rig = Rig(
        f"""
        .visible .entry lanes(.param .u64 out) {{
        .reg .b32 {names}; .reg .b32 %t, %r<20>; .reg .b64 %kd, %ke; .reg .pred %p<9>;
        mov.u32 %t, %tid.x; {"".join(f"mov.u32 %o{k}, 0;" for k in range(outputs))}
        {lines}
        end: ld.param.u64 %kd, [out]; mul.wide.u32 %ke, %t, {4 * outputs}; add.u64 %kd, %kd, %ke; {stores} ret; }}
        """
    )
    out = np.zeros((block, outputs), np.uint32)
    rig.run([out], block=(block,))
    return out.T


def shuffle(mode: str, values: Array, b: Array, c: int) -> tuple[Array, Array]:
    """The ISA's pseudocode of shfl, lane by lane."""
    result, valid = values.copy(), np.zeros(len(values), bool)
    clamp, segment = c & 31, c >> 8 & 31
    for k in range(len(values)):
        lane, delta = k & 31, int(b[k]) & 31
        top = lane & segment | clamp & ~segment & 31
        low = lane & segment
        source = {"up": lane - delta, "down": lane + delta, "bfly": lane ^ delta, "idx": low | delta & ~segment & 31}[
            mode
        ]
        ok = source >= top if mode == "up" else source <= top
        valid[k] = ok
        result[k] = values[(k & ~31) + (source if ok else lane)]
    return result, valid


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles_with_fixed_and_computed_lanes(mode: str) -> None:
    t = np.arange(64)
    clamp = 0 if mode == "up" else 31
    eight = 0x1800 if mode == "up" else 0x181F
    got = lanes(
        f"""
        mad.lo.u32 %r1, %t, %t, 17; and.b32 %r2, %t, 7; mov.u32 %r3, {eight};
        shfl.sync.{mode}.b32 %o0|%p1, %r1, 3, {clamp}, -1; selp.u32 %o1, 1, 0, %p1;
        shfl.sync.{mode}.b32 %o2|%p2, %r1, %r2, %r3, -1; selp.u32 %o3, 1, 0, %p2;
        """,
        4,
    )
    values = (t * t + 17).astype(np.uint32)
    for k, (b, c) in enumerate(((np.full(64, 3), clamp), (t & 7, eight))):
        result, valid = shuffle(mode, values, b, c)
        np.testing.assert_array_equal(got[2 * k], result)
        np.testing.assert_array_equal(got[2 * k + 1], valid)


def test_votes_matches_and_reductions() -> None:
    got = lanes(
        """
        and.b32 %r1, %t, 3; setp.eq.u32 %p1, %r1, 1; vote.sync.ballot.b32 %o0, %p1, -1; vote.sync.any.pred %p2, %p1, -1;
        vote.sync.all.pred %p3, %p1, -1; @%p1 vote.sync.uni.pred %p4, %p1, 0x22222222; selp.u32 %o1, 1, 0, %p2;
        @%p3 add.u32 %o1, %o1, 2; @%p4 add.u32 %o1, %o1, 4; match.any.sync.b32 %o2, %r1, -1;
        shr.u32 %r2, %t, 5; match.all.sync.b32 %o3|%p5, %r2, -1; @!%p5 add.u32 %o3, %o3, 1;
        add.u32 %r3, %t, 5; redux.sync.add.u32 %o4, %r3, -1; sub.u32 %r4, 10, %t; redux.sync.min.s32 %o5, %r4, -1;
        redux.sync.max.u32 %o6, %r4, -1; mov.u32 %o7, %laneid; setp.lt.u32 %p7, %o7, 16;
        @%p7 redux.sync.xor.b32 %o7, %r3, 0x0000ffff; activemask.b32 %o8;
        elect.sync %o9|%p6, -1; @%p6 add.u32 %o9, %o9, 100; mov.u32 %o10, %laneid; mov.u32 %o11, %lanemask_lt;
        mov.u32 %o12, %lanemask_ge; mov.u32 %o13, %warpid;
        """,
        14,
    )
    t = np.arange(64)
    full = 2**32 - 1
    np.testing.assert_array_equal(got[0], np.full(64, 0x22222222))
    np.testing.assert_array_equal(got[1], np.where(t % 4 == 1, 1 + 4, 1))
    np.testing.assert_array_equal(got[2], [0x11111111 << (k & 3) for k in range(64)])
    np.testing.assert_array_equal(got[3], np.full(64, full))
    for w in (0, 1):
        part = slice(32 * w, 32 * w + 32)
        mine = t[part]
        assert (got[4][part] == (mine + 5).sum()).all()
        assert (got[5].view(np.int32)[part] == (10 - mine).min()).all()
        assert (got[6][part] == (10 - mine).astype(np.uint32).max()).all()
        assert (got[7][part][:16] == np.bitwise_xor.reduce(mine[:16] + 5)).all()
        assert (got[7][part][16:] == np.arange(16, 32)).all()
    np.testing.assert_array_equal(got[8], np.full(64, full))
    np.testing.assert_array_equal(got[9], np.where(t % 32 == 0, 100, 0))
    np.testing.assert_array_equal(got[10], t % 32)
    np.testing.assert_array_equal(got[11], [(1 << k % 32) - 1 for k in t])
    np.testing.assert_array_equal(got[12], [full & ~((1 << k % 32) - 1) for k in t])
    np.testing.assert_array_equal(got[13], t // 32)


def test_votes_in_a_branch_count_its_lanes_only() -> None:
    got = lanes(
        """
        and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 1; @%p1 bra odd; activemask.b32 %o0; bra end;
        odd: activemask.b32 %o0; setp.gt.u32 %p2, %t, 15; vote.sync.ballot.b32 %o1, %p2, 0xaaaaaaaa;
        """,
        2,
        block=40,
    )
    t = np.arange(40)
    inside = np.where(t < 32, 0xFFFFFFFF, 0xFF)
    np.testing.assert_array_equal(got[0], np.where(t & 1, 0xAAAAAAAA, 0x55555555) & inside)
    np.testing.assert_array_equal(got[1], np.where(t & 1, np.where(t < 32, 0xAAAA0000, 0xAA), 0))


@pytest.mark.parametrize("block", [1, 31, 33, 96, 256, 1024])
def test_tree_reduction_with_barriers_in_a_loop(block: int) -> None:
    rig = Rig(
        """
        .visible .entry tree(.param .u64 data, .param .u64 sums) {
        .shared .align 4 .b8 room[4096]; .reg .b32 %r<20>; .reg .b64 %d<9>; .reg .pred %p<4>;
        mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %ctaid.x; mad.lo.u32 %r4, %r3, %r2, %r1;
        ld.param.u64 %d1, [data]; mul.wide.u32 %d2, %r4, 4; add.u64 %d1, %d1, %d2; ld.global.u32 %r5, [%d1];
        mov.u32 %r6, room; shl.b32 %r7, %r1, 2; add.u32 %r7, %r6, %r7; st.shared.u32 [%r7], %r5; mov.u32 %r8, 512;
        loop: bar.sync 0; add.u32 %r9, %r1, %r8; setp.ge.u32 %p1, %r1, %r8; setp.ge.u32 %p2, %r9, %r2;
        or.pred %p1, %p1, %p2;
        @%p1 bra skip; shl.b32 %r10, %r8, 2; add.u32 %r10, %r7, %r10; ld.shared.u32 %r11, [%r10];
        ld.shared.u32 %r12, [%r7];
        add.u32 %r12, %r12, %r11; st.shared.u32 [%r7], %r12;
        skip: shr.u32 %r8, %r8, 1; setp.ne.u32 %p3, %r8, 0; @%p3 bra loop;
        setp.ne.u32 %p1, %r1, 0; @%p1 ret; ld.shared.u32 %r13, [room]; ld.param.u64 %d3, [sums];
        mul.wide.u32 %d4, %r3, 4;
        add.u64 %d3, %d3, %d4; st.global.u32 [%d3], %r13; ret; }
        """
    )
    data = np.random.default_rng(block).integers(0, 1000, (9, block)).astype(np.uint32)
    sums = np.zeros(9, np.uint32)
    rig.run([data, sums], grid=(9,), block=(block,))
    np.testing.assert_array_equal(sums, data.sum(1))


def test_warps_that_run_different_code_meet_at_barriers() -> None:
    """A producer and a consumer warp hand a slot to and fro through named barriers, 64 threads each."""
    rig = Rig(
        """
        .visible .entry pipe(.param .u64 out) {
        .shared .align 4 .b32 slot[32]; .reg .b32 %r<20>; .reg .b64 %d<9>; .reg .pred %p<4>;
        mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; mov.u32 %r3, slot; shl.b32 %r4, %r2, 2; add.u32 %r3, %r3, %r4;
        mov.u32 %r5, 0;
        setp.ge.u32 %p1, %r1, 32; @%p1 bra consumer;
        producer: mad.lo.u32 %r6, %r5, 100, %r2; st.shared.u32 [%r3], %r6; bar.arrive 1, 64; barrier.sync 2, 64;
        add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 10; @%p2 bra producer; ret;
        consumer: mov.u32 %r7, 0;
        next: barrier.sync 1, 64; ld.shared.u32 %r8, [%r3]; add.u32 %r7, %r7, %r8; bar.arrive 2, 64;
        add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 10; @%p2 bra next;
        ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %r2, 4; add.u64 %d1, %d1, %d2; st.global.u32 [%d1], %r7; ret; }
        """
    )
    out = np.zeros(32, np.uint32)
    rig.run([out], grid=(4,), block=(64,))
    np.testing.assert_array_equal(out, 4500 + 10 * np.arange(32))


def test_barrier_reductions() -> None:
    got = lanes(
        """
        and.b32 %r1, %t, 3; setp.eq.u32 %p1, %r1, 0; bar.red.popc.u32 %o0, 0, %p1; bar.red.or.pred %p2, 0, %p1;
        setp.lt.u32 %p4, %t, 1000; barrier.red.and.pred %p3, 3, %p4; selp.u32 %o1, 1, 0, %p2; @%p3 add.u32 %o1, %o1, 2;
        barrier.red.and.pred %p3, 3, !%p1; @%p3 add.u32 %o1, %o1, 4;
        """,
        2,
        block=100,
    )
    np.testing.assert_array_equal(got[0], np.full(100, 25))
    np.testing.assert_array_equal(got[1], np.full(100, 3))


def test_lanes_of_one_warp_wait_at_different_barriers_of_one_number() -> None:
    got = lanes(
        """
        .shared .align 4 .b32 flag[2]; mov.u32 %r1, flag; and.b32 %r2, %t, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra even;
        st.shared.u32 [%r1+4], 7; barrier.sync 0; ld.shared.u32 %o0, [%r1]; bra end;
        even: st.shared.u32 [%r1], 9; barrier.sync 0; ld.shared.u32 %o0, [%r1+4];
        """,
        1,
        block=70,
    )
    np.testing.assert_array_equal(got[0], np.where(np.arange(70) & 1, 9, 7))


def test_threads_that_have_left_are_not_waited_for() -> None:
    got = lanes(
        """
        setp.gt.u32 %p1, %t, 50; @%p1 bra end; bar.sync 0; mov.u32 %o0, 1; setp.gt.u32 %p1, %t, 20; @%p1 bra end;
        bar.sync 0; mov.u32 %o0, 2;
        """,
        1,
    )
    np.testing.assert_array_equal(got[0], [2 if t <= 20 else 1 if t <= 50 else 0 for t in range(64)])


def test_a_warp_that_spins_on_a_flag_lets_the_other_set_it() -> None:
    got = lanes(
        """
        .shared .align 4 .b32 flag[2]; mov.u32 %r1, flag; setp.ge.u32 %p1, %t, 32; @%p1 bra setter;
        spin: ld.volatile.shared.u32 %r2, [%r1]; setp.ne.u32 %p2, %r2, 99; @%p2 bra spin; mov.u32 %o0, 5; bra end;
        setter: st.volatile.shared.u32 [%r1], 99; mov.u32 %o0, 6;
        """,
        1,
    )
    np.testing.assert_array_equal(got[0], [5] * 32 + [6] * 32)


def test_lanes_of_one_warp_take_turns_at_a_lock() -> None:
    """Each thread of 64 holds the lock once; a lane that spins must let the holder, of its own warp, go on."""
    rig = Rig(
        """
        .visible .entry lock(.param .u64 data) {
        .reg .b32 %r<9>; .reg .b64 %d; .reg .pred %p;
        ld.param.u64 %d, [data];
        take: atom.global.cas.b32 %r1, [%d], 0, 1; setp.ne.u32 %p, %r1, 0; @%p bra take;
        ld.volatile.global.u32 %r2, [%d+4]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%d+4], %r2;
        membar.gl; atom.global.exch.b32 %r3, [%d], 0; ret; }
        """
    )
    data = np.zeros(2, np.uint32)
    rig.run([data], grid=(8,), block=(64,))
    assert data.tolist() == [0, 512]


def test_ctas_wait_for_those_before_them() -> None:
    rig = Rig(
        """
        .visible .entry chain(.param .u64 data) {
        .reg .b32 %r<9>; .reg .b64 %d; .reg .pred %p;
        ld.param.u64 %d, [data]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; setp.ne.u32 %p, %r2, 0; @%p ret;
        wait: ld.acquire.gpu.global.u32 %r3, [%d]; setp.ne.u32 %p, %r3, %r1; @%p bra wait;
        add.u32 %r3, %r3, 1; st.release.gpu.global.u32 [%d], %r3; ret; }
        """,
        threads=3,
    )
    data = np.zeros(1, np.uint32)
    rig.run([data], grid=(100,), block=(40,))
    assert data[0] == 100


def test_a_barrier_counts_a_last_warp_that_is_not_full_as_whole() -> None:
    got = lanes("bar.sync 3, 64; mov.u32 %o0, 1; barrier.sync 4, 64; add.u32 %o0, %o0, 1;", 1, block=40)
    np.testing.assert_array_equal(got[0], np.full(40, 2))


@pytest.mark.parametrize(
    ("line", "thread"),
    [
        ("shfl.sync.idx.b32 %o0, %t, 0, 31, 0xffff;", 16),
        ("bar.warp.sync 0xfffffffe;", 0),
        ("@%p1 mov.u32 %r1, 7; vote.sync.any.pred %p2, %p1, %r1;", 35),
        ("match.any.sync.b32 %o0, %t, %r2;", 1),
        ("redux.sync.add.u32 %o0, %t, %r1; @%p1 mov.u32 %r1, 0; @%p1 redux.sync.add.u32 %o0, %t, %r1;", 35),
        ("@!%p1 elect.sync %o0|%p2, 0xffff7fff;", 15),
    ],
)
def test_a_lane_that_its_member_mask_does_not_name(line: str, thread: int) -> None:
    """The ISA leaves the behaviour undefined; lanes of one warp may have masks of their own."""
    setup = "mov.u32 %r1, -1; mov.u32 %r2, %laneid; shr.u32 %r2, %r2, 1; shl.b32 %r2, 1, %r2; setp.eq.u32 %p1, %t, 35;"
    with pytest.raises(TeenyError) as caught:
        lanes(f"{setup} {line}", 1)
    assert caught.value.finding.id == "bad-member-mask"
    assert caught.value.finding.note == f"block (0, 0, 0), thread ({thread}, 0, 0)"


def test_a_member_mask_may_name_lanes_that_have_exited_or_never_were() -> None:
    got = lanes("setp.lt.u32 %p1, %t, 8; @%p1 exit; bar.warp.sync -1; vote.sync.ballot.b32 %o0, 1, -1;", 1, block=40)
    np.testing.assert_array_equal(got[0], [0] * 8 + [0xFFFFFF00] * 24 + [0xFF] * 8)


@pytest.mark.parametrize(
    ("block", "first", "count"), [(100, 64, 64), (100, 0, 128), (36, 32, 32), (96, 32, 64), (64, 0, 128)]
)
def test_a_count_is_in_whole_warps_also_where_the_last_is_not(block: int, first: int, count: int) -> None:
    """Threads from ``first`` on meet at a barrier of their own; 128 of 64 with each arriving twice."""
    twice = f"bar.arrive 2, {count};" if count > block + 31 else ""
    result = lanes(
        f"setp.lt.u32 %p1, %t, {first}; @%p1 bra end; {twice} bar.sync 2, {count}; mov.u32 %o0, 7;", 1, block=block
    )
    np.testing.assert_array_equal(result[0], [0 if t < first else 7 for t in range(block)])


@pytest.mark.parametrize("block", [32, 64])
def test_lanes_meet_in_each_round_of_a_loop_with_several_ways_back(block: int) -> None:
    """Odd lanes go back at once; the next round's vote waits for the even ones."""
    result = lanes(
        """
        mov.u32 %r1, 0; mov.u32 %r2, 0; and.b32 %r3, %t, 1; and.b32 %r8, %t, 3;
        head: vote.sync.ballot.b32 %r4, 1, -1; setp.eq.s32 %p2, %r4, -1; @%p2 add.u32 %o0, %o0, 1;
        shfl.sync.idx.b32 %r5, %r1, 0, 31, -1; add.u32 %o1, %o1, %r5;
        add.u32 %r1, %r1, 1; setp.ge.u32 %p1, %r1, 6; @%p1 bra end;
        add.u32 %r6, %r3, %r1; and.b32 %r6, %r6, 1; setp.eq.u32 %p3, %r6, 1; @%p3 bra head;
        add.u32 %o2, %o2, 1; setp.eq.u32 %p3, %r8, 2; @%p3 bra head;
        add.u32 %o2, %o2, 10; bra head;
        """, 3, block=block,
    )  # fmt: skip
    np.testing.assert_array_equal(result[0], 6)
    np.testing.assert_array_equal(result[1], 15)
    even = [sum((t + k) % 2 == 0 for k in range(1, 6)) for t in range(block)]
    np.testing.assert_array_equal(result[2], [n * (1 if t % 4 == 2 else 11) for t, n in enumerate(even)])
