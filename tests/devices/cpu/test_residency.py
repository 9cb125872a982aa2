"""CTAs that wait for each other: through memory, at the grid's barrier, within a cluster; and who waits in vain."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from teenycli.devices.cpu.hall import CpuKernel
from teenycli.errors import Finding, TeenyError
from teenycli.exits import Exit
from tests.devices.cpu.kit import Array, Rig, interrupted

pytestmark = pytest.mark.unit

NVCC = Path(__file__).parent.parent.parent / "corpus" / "nvcc"


def fault(text: str, *args: Array | int, **how: object) -> Finding:
    rig = Rig(text)
    with pytest.raises(TeenyError) as caught:
        rig.run(args, **how)  # type: ignore[arg-type]
    assert caught.value.exit is Exit.FAILED
    rig.device.close()
    return caught.value.finding


@pytest.mark.parametrize(("grid", "block"), [(1, 32), (4, 64), (37, 128)])
def test_a_cooperative_launch_synchronises_its_grid(grid: int, block: int) -> None:
    rig = Rig((NVCC / "grid_sync.ptx").read_text())
    x = np.arange(grid * block, dtype=np.int32)
    for _ in range(2):
        y = np.zeros(grid * block // 8, np.int32)
        rig.run([x, y], grid=(grid,), block=(block,), cooperative=True)
        sums = x.reshape(-1, 8).sum(1)
        assert ((y > sums) & (y <= sums + 256)).all()
    rig.device.close()


def test_a_cooperative_grid_is_resident_as_a_whole_or_refused() -> None:
    rig = Rig((NVCC / "grid_sync.ptx").read_text())
    x = np.arange(5000 * 32, dtype=np.int32)
    y = np.zeros(5000 * 4, np.int32)
    rig.run([x, y], grid=(5000,), block=(32,), cooperative=True)
    assert (y > x.reshape(-1, 8).sum(1)).all()
    with pytest.raises(TeenyError) as caught:
        rig.run([x, y], grid=(1 << 30,), block=(32,), cooperative=True)
    assert (caught.value.finding.id, caught.value.exit) == ("launch-refused", Exit.UNSUPPORTED)
    rig.device.close()


def test_without_a_cooperative_launch_the_headers_of_cuda_trap() -> None:
    x = np.zeros(32, np.int32)
    assert fault((NVCC / "grid_sync.ptx").read_text(), x, x.copy(), block=(32,)).id == "trap"


FLAGS = """
.visible .entry chain(.param .u64 flags, .param .u32 step) {
.reg .b64 %d<6>; .reg .b32 %r<9>; .reg .pred %p<3>; .shared .align 4 .u32 got;
ld.param.u64 %d1, [flags]; ld.param.u32 %r7, [step]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;
mov.u32 %r3, %nctaid.x; add.u32 %r4, %r1, %r7; setp.ge.u32 %p1, %r4, %r3; setp.ne.u32 %p2, %r2, 0;
mov.u32 %r5, 1; @%p2 bra after; @%p1 bra first;
mad.wide.u32 %d2, %r4, 4, %d1;
wait: ld.acquire.gpu.global.u32 %r5, [%d2]; setp.eq.u32 %p2, %r5, 0; @%p2 bra wait;
add.u32 %r5, %r5, 1;
first: st.shared.u32 [got], %r5; mad.wide.u32 %d3, %r1, 4, %d1; st.release.gpu.global.u32 [%d3], %r5;
after: bar.sync 0; ret; }
"""


@pytest.mark.parametrize("step", [1, 0xFFFFFFFF])
def test_a_chain_of_ctas_that_wait_for_the_next_or_the_one_before(step: int) -> None:
    """With the next, the last must run before all others can end: all of them come to be resident."""
    flags = np.zeros(150, np.uint32)
    rig = Rig(FLAGS)
    rig.run([flags, step], grid=(150,), block=(64,))
    wanted = np.arange(150) + 1
    np.testing.assert_array_equal(flags, wanted[::-1] if step == 1 else wanted)
    rig.device.close()


def test_a_chain_that_nobody_begins_ends_with_the_time_out() -> None:
    text = FLAGS.replace("@%p1 bra first;", "and.b32 %r4, %r4, 7;")
    start = time.perf_counter()
    assert fault(text, np.zeros(8, np.uint32), 1, grid=(8,), block=(64,), timeout=0.3).id == "timeout"
    assert time.perf_counter() - start < 5


def test_an_interrupt_ends_ctas_that_wait_for_each_other() -> None:
    rig = Rig(FLAGS.replace("@%p1 bra first;", "and.b32 %r4, %r4, 7;"))
    rig.device.load(rig.module, "chain")
    with pytest.raises(KeyboardInterrupt), interrupted(0.8):
        rig.run([np.zeros(8, np.uint32), 1], grid=(8,), block=(64,), timeout=0)
    rig.device.close()


# --- clusters --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["clusters.ptx", "clusters.sm_100.ptx"])
def test_blocks_read_each_others_shared_memory(file: str) -> None:
    rig = Rig((NVCC / file).read_text())
    x = np.arange(64, dtype=np.int32) * 3
    got = x.copy()
    rig.run([got], grid=(2,), block=(32,), cluster=(2, 1, 1), entry="pair_of_blocks")
    # Both blocks read x[0:32] and write it back; whichever came last, the value is the same.
    np.testing.assert_array_equal(got[:32], x[:32] + 2)
    out = np.zeros(24, np.int32)
    rig.run([out], grid=(24,), block=(4,), cluster=(8, 1, 1), entry="bounded_cluster")
    np.testing.assert_array_equal(out, [i % 8 + 8 * (i // 8) for i in range(24)])
    rig.device.close()


PLACES = """
.visible .entry places(.param .u64 out) {
.reg .b64 %d<5>; .reg .b32 %r<30>; .reg .pred %p; .shared .align 8 .b8 mine[64];
ld.param.u64 %d1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %nctaid.x;
mad.lo.u32 %r4, %r2, %r3, %r1; mad.wide.u32 %d1, %r4, 64, %d1;
mov.u32 %r5, %cluster_ctarank; mov.u32 %r6, %cluster_nctarank; mov.u32 %r7, %clusterid.x; mov.u32 %r8, %clusterid.y;
mov.u32 %r9, %cluster_ctaid.x; mov.u32 %r10, %cluster_ctaid.y; mov.u32 %r11, %nclusterid.y;
mov.u32 %r12, %cluster_nctaid.y; mov.pred %p, %is_explicit_cluster; selp.u32 %r13, 1, 0, %p;
mov.u32 %r14, mine; st.shared.u32 [%r14+4], %r4; st.shared.u32 [%r14+8], 0;
barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
add.u32 %r15, %r5, 1; rem.u32 %r15, %r15, %r6; mapa.shared::cluster.u32 %r16, %r14, %r15;
ld.shared::cluster.u32 %r17, [%r16+4]; getctarank.shared::cluster.u32 %r18, %r16;
cvta.shared.u64 %d2, mine; mapa.u64 %d3, %d2, %r15; ld.u32 %r19, [%d3+4]; getctarank.u64 %r20, %d3;
atom.shared::cluster.add.u32 %r21, [%r16+8], %r5; atom.add.u32 %r21, [%d3+8], 100;
getctarank.shared::cluster.u32 %r22, %r14;
barrier.cluster.arrive; barrier.cluster.wait; ld.shared.u32 %r23, [mine+8];
st.global.v4.u32 [%d1], {%r5, %r6, %r7, %r8}; st.global.v4.u32 [%d1+16], {%r9, %r10, %r11, %r12};
st.global.v4.u32 [%d1+32], {%r13, %r17, %r18, %r19}; st.global.v4.u32 [%d1+48], {%r20, %r22, %r23, 0};
ret; }
"""


def test_places_in_a_cluster_and_addresses_of_its_other_blocks() -> None:
    out = np.zeros((8, 6, 16), np.uint32)
    rig = Rig(PLACES.replace("{%r20, %r22, %r23, 0}", "{%r20, %r22, %r23, %r23}"))
    rig.run([out], grid=(6, 8), block=(1,), cluster=(3, 2, 1))
    for y in range(8):
        for x in range(6):
            rank = x % 3 + 3 * (y % 2)
            after, before = (rank + 1) % 6, (rank - 1) % 6
            other = (y - y % 2 + after // 3) * 6 + x - x % 3 + after % 3
            wanted = [rank, 6, x // 3, y // 2, x % 3, y % 2, 4, 2, 1, other, after, other, after, rank]
            np.testing.assert_array_equal(out[y, x, :14], wanted)
            assert out[y, x, 14] == before + 100
    rig.device.close()


def test_the_window_of_the_block_is_not_that_of_the_cluster() -> None:
    out = np.zeros(2, np.uint32)
    text = """
    .visible .entry k(.param .u64 out) { .reg .b64 %a, %b, %o; .reg .b32 %r, %s, %x; .reg .pred %p; .shared .b32 box;
    mov.u32 %r, %cluster_ctarank; xor.b32 %s, %r, 1; mov.u64 %a, box; cvta.shared.u64 %a, %a; mapa.u64 %b, %a, %s;
    mov.u32 %x, 0; isspacep.shared %p, %a; @%p or.b32 %x, %x, 1; isspacep.shared::cta %p, %a; @%p or.b32 %x, %x, 2;
    isspacep.shared::cluster %p, %a; @%p or.b32 %x, %x, 4; isspacep.shared %p, %b; @%p or.b32 %x, %x, 8;
    isspacep.shared::cta %p, %b; @%p or.b32 %x, %x, 16; isspacep.shared::cluster %p, %b; @%p or.b32 %x, %x, 32;
    mapa.u64 %b, %b, %r; isspacep.shared::cta %p, %b; @%p or.b32 %x, %x, 64;
    ld.param.u64 %o, [out]; mad.wide.u32 %o, %r, 4, %o; st.global.u32 [%o], %x; ret; }
    """
    rig = Rig(text)
    rig.run([out], grid=(2,), block=(1,), cluster=(2, 1, 1))
    rig.device.close()
    assert out.tolist() == [1 | 2 | 4 | 32 | 64] * 2


def test_stores_to_another_block_complete_its_mbarrier() -> None:
    text = """
    .visible .entry ring(.param .u64 out) {
    .reg .b64 %d<5>; .reg .b32 %r<20>; .reg .pred %p<3>; .shared .align 8 .b64 bar; .shared .align 4 .u32 box[32];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p1, %r1, 0; mov.u32 %r9, bar; mov.u32 %r10, box;
    @%p1 mbarrier.init.shared::cta.b64 [bar], 1; @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
    barrier.cluster.arrive; barrier.cluster.wait;
    xor.b32 %r3, %r2, 1; mapa.shared::cluster.u32 %r4, %r9, %r3; mad.lo.u32 %r5, %r1, 4, %r10;
    mapa.shared::cluster.u32 %r5, %r5, %r3; mad.lo.u32 %r6, %r2, 100, %r1;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r5], %r6, [%r4];
    wait: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar], 0; @!%p2 bra wait;
    mad.lo.u32 %r7, %r1, 4, %r10; ld.shared.u32 %r8, [%r7]; ld.param.u64 %d1, [out]; mov.u32 %r11, %ctaid.x;
    mad.lo.u32 %r11, %r11, 32, %r1; mad.wide.u32 %d1, %r11, 4, %d1; st.global.u32 [%d1], %r8;
    barrier.cluster.arrive; barrier.cluster.wait; ret; }
    """
    out = np.zeros(4 * 32, np.uint32)
    rig = Rig(text)
    rig.run([out], grid=(4,), block=(32,), cluster=(2, 1, 1))
    lanes = np.arange(32)
    np.testing.assert_array_equal(out.reshape(4, 32), [lanes + 100, lanes, lanes + 100, lanes])
    rig.device.close()


ARRIVED = """
.visible .entry early(.param .u64 flags, .param .u64 out) {
.reg .b64 %d<6>; .reg .b32 %r<9>; .reg .pred %p<3>;
ld.param.u64 %d1, [flags]; ld.param.u64 %d2, [out]; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, %clusterid.x;
mad.wide.u32 %d1, %r2, 4, %d1; mov.u32 %r3, %tid.x; setp.eq.u32 %p1, %r1, 0; @!%p1 bra other;
barrier.cluster.arrive;
look: ld.acquire.gpu.global.u32 %r4, [%d1]; setp.eq.u32 %p2, %r4, 0; @%p2 bra look;
barrier.cluster.wait; bra again;
other: barrier.cluster.arrive; barrier.cluster.wait; setp.eq.u32 %p2, %r3, 5; @%p2 st.release.gpu.global.u32 [%d1], 7;
mov.u32 %r4, 3;
again: barrier.cluster.arrive; add.u32 %r4, %r4, 1; barrier.cluster.wait;
mov.u32 %r5, %ctaid.x; mov.u32 %r6, %ntid.x; mad.lo.u32 %r5, %r5, %r6, %r3; mad.wide.u32 %d2, %r5, 4, %d2;
st.global.u32 [%d2], %r4; ret; }
"""


@pytest.mark.parametrize("block", [20, 64])
def test_a_block_that_has_arrived_at_the_clusters_barrier_holds_up_nobody(block: int) -> None:
    """Block 0 arrives, and waits for what block 1 does only after that barrier."""
    flags, out = np.zeros(3, np.uint32), np.zeros((6, block), np.uint32)
    rig = Rig(ARRIVED)
    rig.run([flags, out], grid=(6,), block=(block,), cluster=(2, 1, 1))
    np.testing.assert_array_equal(flags, 7)
    np.testing.assert_array_equal(out, np.array([[8], [4]] * 3) * np.ones(block, int))
    rig.device.close()


def test_two_loops_of_one_warp_wait_for_another_warp() -> None:
    """Half the lanes wait for one flag and half for another, which the second warp sets one after the other."""
    text = """
    .visible .entry k(.param .u64 out) {
    .reg .b64 %d<3>; .reg .b32 %r<9>; .reg .pred %p<4>; .shared .align 4 .u32 flags[2];
    ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %d1, %r1, 4, %d1; and.b32 %r2, %r1, 1;
    setp.ge.u32 %p1, %r1, 32; @%p1 bra sets; setp.eq.u32 %p2, %r2, 0; @%p2 bra even;
    odd: ld.volatile.shared.u32 %r3, [flags]; setp.eq.u32 %p3, %r3, 0; @%p3 bra odd; bra end;
    even: ld.volatile.shared.u32 %r3, [flags+4]; setp.eq.u32 %p3, %r3, 0; @%p3 bra even; bra end;
    sets: st.volatile.shared.u32 [flags+4], 5; st.volatile.shared.u32 [flags], 6; mov.u32 %r3, 1;
    end: st.global.u32 [%d1], %r3; ret; }
    """
    out = np.zeros(64, np.uint32)
    rig = Rig(text)
    rig.run([out], block=(64,))
    np.testing.assert_array_equal(out[:32], [5, 6] * 16)
    rig.device.close()


@pytest.mark.parametrize("look", ["atom.global.add.u32 %r3, [%d1], 0;", "atom.global.or.b32 %r3, [%d1], 0;",
                                  "nanosleep.u32 20; ld.global.u32 %r3, [%d1];"])  # fmt: skip
def test_a_flag_may_be_looked_at_in_any_way(look: str) -> None:
    text = f"""
    .visible .entry k(.param .u64 flag) {{ .reg .b64 %d<3>; .reg .b32 %r<9>; .reg .pred %p<4>;
    ld.param.u64 %d1, [flag]; mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 39; @%p1 bra sets;
    waits: {look} setp.eq.u32 %p3, %r3, 0; @%p3 bra waits;
    sets: red.global.add.u32 [%d1], 1; ret; }}
    """
    flag = np.zeros(1, np.uint32)
    rig = Rig(text)
    rig.run([flag], grid=(40,), block=(1,))
    assert flag[0] == 40
    rig.device.close()


@pytest.mark.parametrize(("body", "spins"), [
    ("atom.global.add.u32 %r3, [%d1], 1; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 9; @%p1 bra loop;", False),
    ("ld.volatile.global.u32 %r3, [%d1]; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 9; @%p1 bra loop;", False),
    ("atom.global.add.u32 %r3, [%d1], 1; setp.lt.u32 %p1, %r3, 9; @%p1 bra loop;", True),
    ("atom.global.cas.b32 %r3, [%d1], 0, 1; setp.ne.u32 %p2, %r3, 0; @%p2 bra next; mov.u32 %r4, 1;"
     "next: setp.eq.u32 %p1, %r4, 0; @%p1 bra loop;", True),
])  # fmt: skip
def test_a_loop_gives_way_where_its_course_depends_on_others(body: str, spins: bool) -> None:
    rig = Rig(f""".visible .entry k(.param .u64 flag) {{ .reg .b64 %d<3>; .reg .b32 %r<9>; .reg .pred %p<4>;
    ld.param.u64 %d1, [flag]; mov.u32 %r4, 0; loop: {body} ret; }}""")
    kernel = rig.device.load(rig.module, "k")
    assert isinstance(kernel, CpuKernel)
    assert kernel.image.spins is spins
    rig.device.close()


def test_shared_memory_of_another_block_has_bounds() -> None:
    finding = fault(PLACES.replace("ld.shared::cluster.u32 %r17, [%r16+4];", "ld.shared::cluster.u32 %r17, [%r16+64];"),
                    np.zeros((2, 16), np.uint32), grid=(2,), block=(1,), cluster=(2, 1, 1))  # fmt: skip
    assert finding.id == "out-of-bounds"


# --- deadlocks -------------------------------------------------------------------------------------------------------


def test_a_deadlock_says_which_warps_wait_where() -> None:
    finding = fault(
        """
        .visible .entry stuck(.param .u64 out) { .reg .b32 %r; .reg .pred %p, %q; mov.u32 %r, %tid.x;
        setp.lt.u32 %p, %r, 96; setp.ge.u32 %q, %r, 160; vote.sync.any.pred %q, %q, -1; @%p bra low;
        @%q bra done;
        bar.sync 1, 256;
        done: ret;
        low:
        bar.sync 2, 256; ret; }
        """,
        np.zeros(4, np.uint32), block=(192,),
    )  # fmt: skip
    assert finding.id == "deadlock"
    assert "warps 0 to 2 at 'bar.sync' in line 11" in finding.message
    assert "warps 3, 4 at 'bar.sync' in line 8" in finding.message


def test_a_cluster_of_which_one_block_waits_for_itself_is_a_deadlock() -> None:
    finding = fault(
        """
        .visible .entry stuck(.param .u64 out) { .reg .b32 %r<3>; .reg .pred %p; mov.u32 %r1, %cluster_ctarank;
        mov.u32 %r2, %tid.x; setp.eq.u32 %p, %r1, 1; @%p bra other; barrier.cluster.arrive; barrier.cluster.wait; ret;
        other: setp.ge.u32 %p, %r2, 32; @%p bra late; bar.sync 0, 64; ret;
        late: barrier.cluster.arrive; barrier.cluster.wait; ret; }
        """,
        np.zeros(4, np.uint32), grid=(2,), block=(64,), cluster=(2, 1, 1),
    )  # fmt: skip
    assert finding.id == "deadlock"
    assert "'bar.sync'" in finding.message
    assert "'barrier.cluster.wait'" in finding.message


MISSED = """
.visible .entry stuck(.param .u64 out) {
.reg .b64 %d<6>; .reg .b32 %r<9>; .reg .pred %p<3>; .shared .align 8 .b64 bar[2];
mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; @!%p1 bra ready;
mbarrier.init.shared::cta.b64 [bar], 2; mbarrier.init.shared::cta.b64 [bar+8], 1;
ready: bar.sync 0; setp.lt.u32 %p2, %r1, 32; @%p2 bra first;
@%p1 mbarrier.arrive.shared::cta.b64 _, [bar+8];
second: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra second; ret;
first: @%p1 mbarrier.arrive.shared::cta.b64 _, [bar];
wait: mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 0; @%p1 bra done; nanosleep.u32 32; bra wait;
done: mbarrier.arrive.shared::cta.b64 _, [bar]; ret; }
"""


@pytest.mark.parametrize("cluster", [1, 2])
def test_an_mbarrier_that_nobody_completes_is_a_deadlock(cluster: int) -> None:
    start = time.perf_counter()
    finding = fault(MISSED, np.zeros(4, np.uint32), grid=(2,), block=(96,), cluster=(cluster, 1, 1), timeout=60)
    assert finding.id == "deadlock"
    lines = MISSED.splitlines()
    for label, text, who in (("wait:", "mbarrier.test_wait", "0"), ("second:", "mbarrier.try_wait", "1, 2")):
        place = next(k for k, line in enumerate(lines) if line.startswith(label)) + 4
        assert f"{who} at '{text}" in finding.message
        assert f"in line {place}" in finding.message
    assert time.perf_counter() - start < 20


def test_blocks_of_a_cluster_that_wait_for_each_others_mbarriers_are_a_deadlock() -> None:
    text = """
    .visible .entry stuck(.param .u64 out) {
    .reg .b32 %r<9>; .reg .pred %p<3>; .shared .align 8 .b64 bar;
    mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared::cta.b64 [bar], 1;
    barrier.cluster.arrive; barrier.cluster.wait;
    wait: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra wait;
    mov.u32 %r2, %cluster_ctarank; xor.b32 %r2, %r2, 1; mov.u32 %r3, bar; mapa.shared::cluster.u32 %r3, %r3, %r2;
    @%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3]; ret; }
    """
    assert fault(text, np.zeros(4, np.uint32), grid=(4,), block=(32,), cluster=(2, 1, 1), timeout=60).id == "deadlock"
    # With one of them arriving first it is none.
    fine = text.replace("wait:", "mov.u32 %r4, %cluster_ctarank; setp.eq.u32 %p2, %r4, 0; @%p2 bra go; wait:")
    rig = Rig(fine.replace("mov.u32 %r2, %cluster", "go: mov.u32 %r2, %cluster").replace("ret;", "@!%p1 ret; ret;"))
    rig.run([np.zeros(4, np.uint32)], grid=(4,), block=(32,), cluster=(2, 1, 1))
    rig.device.close()


#: Each CTA, warp or lane waits for the one after it, whose flag a function of its own looks at (as debuggers' code does),
#: or that comes by way of memory.
CALLED = """
.func (.param .b32 r) look(.param .b64 at) {
.reg .b64 %d<2>; .reg .b32 %r<2>;
ld.param.b64 %d1, [at]; ld.volatile.b32 %r1, [%d1]; st.param.b32 [r], %r1; ret; }
.visible .entry wait(.param .u64 flags, .param .u32 mine) {
.reg .b64 %d<4>; .reg .b32 %r<8>; .reg .pred %p<3>; .shared .align 4 .b32 got[64]; .local .align 4 .b32 kept;
ld.param.u64 %d1, [flags]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %nctaid.x;
mad.lo.u32 %r1, %r1, %r3, %r2; mad.lo.u32 %r4, %r4, %r3, -1; setp.eq.u32 %p1, %r1, %r4;
mad.wide.u32 %d2, %r1, 4, %d1; @%p1 bra done;
again: {LOOK}
setp.eq.u32 %p2, %r5, 0; @%p2 bra again;
done: st.volatile.b32 [%d2], 1; ret; }
"""
LOOKS = {
    "call": "{ .param .b64 at; .param .b32 r; add.s64 %d3, %d2, 4; st.param.b64 [at], %d3; call (r), look, (at); "
    "ld.param.b32 %r5, [r]; }",
    "local": "ld.volatile.b32 %r6, [%d2+4]; st.local.b32 [kept], %r6; ld.local.b32 %r5, [kept];",
    "shared": "mad.lo.u32 %r7, %r2, 4, 0; mov.u32 %r6, got; add.u32 %r7, %r7, %r6; ld.volatile.b32 %r6, [%d2+4]; "
    "st.shared.b32 [%r7], %r6; ld.shared.b32 %r5, [%r7];",
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize(("grid", "block"), [(8, 1), (1, 64), (5, 40)])
def test_a_flag_may_come_by_way_of_a_function_or_of_memory(look: str, grid: int, block: int) -> None:
    rig = Rig(CALLED.replace("{LOOK}", LOOKS[look]))
    flags = np.zeros(grid * block + 1, np.int32)
    rig.run([flags, 0], grid=(grid,), block=(block,), timeout=10)
    assert (flags[:-1] == 1).all()
    rig.device.close()


def test_a_block_may_look_as_one() -> None:
    """One thread looks, all go by what it has seen."""
    rig = Rig(
        """
        .visible .entry wait(.param .u64 flags) {
        .reg .b64 %d<4>; .reg .b32 %r<8>; .reg .pred %p<4>; .shared .align 4 .b32 seen;
        ld.param.u64 %d1, [flags]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mov.u32 %r4, %nctaid.x;
        add.u32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, %r4; mad.wide.u32 %d2, %r1, 4, %d1; setp.ne.u32 %p2, %r2, 0;
        @%p1 bra done;
        again: bar.sync 0; @%p2 bra after; ld.volatile.global.b32 %r6, [%d2+4]; st.shared.b32 [seen], %r6;
        after: bar.sync 0; ld.shared.b32 %r7, [seen]; setp.eq.u32 %p3, %r7, 0; @%p3 bra again;
        done: st.volatile.global.b32 [%d2], 1; ret; }
        """
    )
    flags = np.zeros(9, np.int32)
    rig.run([flags], grid=(9,), block=(64,), timeout=10)
    assert (flags == 1).all()
    rig.device.close()
