"""clusterlaunchcontrol: CTAs that take over others, once each; red.async with an mbarrier."""

from __future__ import annotations

import numpy as np
import pytest

from teenycli.devices.cpu import CpuDevice
from tests.devices.cpu.kit import Array, Rig

pytestmark = pytest.mark.unit

#: Every CTA does its own work, then that of each CTA that it can take: it counts, and leaves the place of who did it.
PERSISTENT = """
.visible .entry steal(.param .u64 counts, .param .u64 doers)
{
.reg .b32 %x, %y, %z, %w, %i, %n, %me, %phase, %t; .reg .b64 %a, %b, %c, %d; .reg .pred %first, %done, %got; .reg .b128 %r;
.shared .align 16 .b8 answer[16]; .shared .align 8 .b64 bar;
ld.param.u64 %a, [counts]; ld.param.u64 %b, [doers]; mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0; mov.u32 %phase, 0;
@%first mbarrier.init.shared::cta.b64 [bar], 1; bar.sync 0;
mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %z, %ctaid.z;
mov.u32 %n, %nctaid.y; mad.lo.u32 %i, %z, %n, %y; mov.u32 %n, %nctaid.x; mad.lo.u32 %me, %i, %n, %x;
work:
mov.u32 %n, %nctaid.y; mad.lo.u32 %i, %z, %n, %y; mov.u32 %n, %nctaid.x; mad.lo.u32 %i, %i, %n, %x;
mad.wide.u32 %c, %i, 4, %a; mad.wide.u32 %d, %i, 4, %b;
@%first red.global.add.u32 [%c], 1; @%first st.global.u32 [%d], %me;
@!%first bra wait;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
clusterlaunchcontrol.try_cancel.async.SPACEmbarrier::complete_tx::bytesMULTICAST.b128 [answer], [bar];
wait:
mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %done, [bar], %phase; @!%done bra wait;
xor.b32 %phase, %phase, 1;
ld.shared.b128 %r, [answer];
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %got, %r;
QUERY
bar.sync 0;
@%got bra work;
ret;
}
"""
QUERIES = {
    "all at once": "@%got clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%x, %y, %z, _}, %r;",
    "one by one": "".join(
        f"@%got clusterlaunchcontrol.query_cancel.get_first_ctaid::{k}.b32.b128 %{k}, %r;" for k in "xyz"
    ),
}


def steal(
    grid: tuple[int, ...],
    *,
    threads: int,
    multicast: bool = False,
    query: str = "all at once",
    cluster: tuple[int, int, int] = (1, 1, 1),
    block: int = 64,
) -> tuple[Array, Array]:
    """How often each CTA was done, and by whom."""
    text = PERSISTENT.replace("SPACE", "shared::cta." if multicast else "").replace("QUERY", QUERIES[query])
    text = text.replace("MULTICAST", ".multicast::cluster::all" if multicast else "")
    if not multicast:
        text = text.replace("[answer], [bar];", "[%c], [%d];").replace(
            "clusterlaunchcontrol.try", "mov.u64 %c, answer; cvta.shared.u64 %c, %c; mov.u64 %d, bar;"
            "cvta.shared.u64 %d, %d; clusterlaunchcontrol.try")  # fmt: skip
    counts, doers = np.zeros(int(np.prod(grid)), np.uint32), np.full(int(np.prod(grid)), 99999, np.uint32)
    rig = Rig(text, device=CpuDevice(threads=threads, cache=False))
    rig.run([counts, doers], grid=grid, block=(block,), cluster=cluster)
    rig.device.close()
    return counts, doers


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("multicast", [False, True])
@pytest.mark.parametrize("block", [1, 64])
def test_one_thread_lets_the_first_take_all(query: str, multicast: bool, block: int) -> None:
    counts, doers = steal((5, 3, 2), threads=1, multicast=multicast, query=query, block=block)
    np.testing.assert_array_equal(counts, 1)
    np.testing.assert_array_equal(doers, 0)


def test_none_is_done_twice_or_forgotten() -> None:
    counts, doers = steal((301,), threads=2)
    np.testing.assert_array_equal(counts, 1)
    assert (doers <= np.arange(301)).all()


def test_in_clusters_of_several_each_does_its_own() -> None:
    counts, doers = steal((8, 2), threads=2, multicast=True, cluster=(2, 1, 1))
    np.testing.assert_array_equal(counts, 1)
    np.testing.assert_array_equal(doers, np.arange(16))


REDUCTIONS = [
    ("add", "u32", 10, 3, 13), ("add", "s32", 10, -3, 7), ("min", "s32", 10, -3, -3), ("max", "u32", 10, -3, -3),
    ("inc", "u32", 5, 7, 6), ("dec", "u32", 0, 7, 7), ("and", "b32", 12, 10, 8), ("or", "b32", 12, 10, 14),
    ("xor", "b32", 12, 10, 6), ("add", "u64", 2**40, 2**40 + 1, 2**41 + 1),
]  # fmt: skip


@pytest.mark.parametrize(("op", "type", "old", "given", "new"), REDUCTIONS)
@pytest.mark.parametrize("space", ["", ".shared::cluster"])
def test_reductions_complete_the_bytes_of_an_mbarrier(
    op: str, type: str, old: int, given: int, new: int, space: str
) -> None:
    """One thread of each CTA of a pair reduces in the memory of the other, which waits for that many bytes."""
    bits = int(type[1:])
    generic = "" if space else "cvta.shared::cluster.u64 %a, %a; cvta.shared::cluster.u64 %b, %b;"
    text = f"""
    .visible .entry k(.param .u64 out) {{
    .reg .b64 %a, %b, %o; .reg .b{bits} %v, %w; .reg .b32 %r, %c, %t; .reg .pred %p, %q;
    .shared .align 8 .b64 bar, box;
    mov.u32 %t, %tid.x; setp.eq.u32 %q, %t, 0; mov.b{bits} %v, {old}; @%q st.shared.b{bits} [box], %v;
    @%q mbarrier.init.shared::cta.b64 [bar], 1;
    @%q mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {bits // 8};
    barrier.cluster.arrive; barrier.cluster.wait;
    mov.u32 %r, %cluster_ctarank; xor.b32 %c, %r, 1; mov.u64 %a, box; mov.u64 %b, bar;
    mapa.shared::cluster.u64 %a, %a, %c; mapa.shared::cluster.u64 %b, %b, %c; {generic}
    mov.b{bits} %v, {given};
    @%q red.async.relaxed.cluster{space}.mbarrier::complete_tx::bytes.{op}.{type} [%a], %v, [%b];
    wait: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [bar], 0; @!%p bra wait;
    ld.shared.b{bits} %w, [box]; ld.param.u64 %o, [out]; mov.u32 %c, %ctaid.x; mad.wide.u32 %o, %c, 8, %o;
    @%q st.global.b{bits} [%o], %w; barrier.cluster.arrive; barrier.cluster.wait; ret; }}"""
    out = np.zeros(4, np.uint64)
    rig = Rig(text)
    rig.run([out], grid=(4,), block=(32,), cluster=(2, 1, 1))
    rig.device.close()
    assert out.tolist() == [new & (1 << bits) - 1] * 4


def test_a_store_of_sixteen_bytes_completes_them() -> None:
    text = """
    .visible .entry k(.param .u64 out) {
    .reg .b64 %a, %b, %o, %x, %y; .reg .b128 %q, %v; .reg .b32 %r, %c, %t; .reg .pred %p;
    .shared .align 16 .b8 box[512]; .shared .align 8 .b64 bar;
    mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared::cta.b64 [bar], 1;
    @%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512; barrier.cluster.arrive; barrier.cluster.wait;
    mov.u32 %r, %cluster_ctarank; xor.b32 %c, %r, 1; mov.u64 %a, box; mad.wide.u32 %a, %t, 16, %a; mov.u64 %b, bar;
    mapa.shared::cluster.u64 %o, %a, %c; mapa.shared::cluster.u64 %b, %b, %c;
    cvt.u64.u32 %x, %t; cvt.u64.u32 %y, %r; mov.b128 %q, {%x, %y};
    st.async.shared::cluster.mbarrier::complete_tx::bytes.b128 [%o], %q, [%b];
    wait: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [bar], 0; @!%p bra wait;
    ld.shared.b128 %v, [%a]; ld.param.u64 %o, [out]; mov.u32 %c, %ctaid.x; mad.lo.u32 %c, %c, 32, %t;
    mad.wide.u32 %o, %c, 16, %o; st.global.b128 [%o], %v; barrier.cluster.arrive; barrier.cluster.wait; ret; }"""
    out = np.zeros((2, 32, 2), np.uint64)
    rig = Rig(text)
    rig.run([out], grid=(2,), block=(32,), cluster=(2, 1, 1))
    rig.device.close()
    np.testing.assert_array_equal(out[:, :, 0], [np.arange(32)] * 2)
    np.testing.assert_array_equal(out[:, :, 1], [[1] * 32, [0] * 32])
