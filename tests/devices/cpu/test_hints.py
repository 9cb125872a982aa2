"""Modifiers of loads and stores that change nothing here, cache hints, and addresses in a cluster of one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.devices.cpu.kit import Rig

pytestmark = pytest.mark.unit

LOADS = [
    "ld.global.nc.b32 %x, [%a];", "ld.global.ca.nc.L2::128B.b32 %x, [%a];", "ld.global.cv.b32 %x, [%a];",
    "ld.global.L1::evict_last.L2::64B.b32 %x, [%a];", "ld.global.nc.L1::no_allocate.L2::cache_hint.b32 %x, [%a], %q;",
    "ld.global.b32 %x, [%a].unified;", "ld.mmio.relaxed.sys.global.b32 %x, [%a];", "ldu.global.b32 %x, [%a];",
    "ld.weak.b32 %x, [%a];", "ld.relaxed.cta.global.b32 %x, [%a];", "ld.acquire.gpu.b32 %x, [%a];",
    "ld.volatile.global.b32 %x, [%a];", "ld.mmio.acquire.sys.global.b32 %x, [%a];",
    "{ .reg .b32 %u<8>; ld.global.v8.b32 {%u0, %u1, _, _, _, _, _, %u7}, [%a]; mov.b32 %x, %u0; }",
    "{ .reg .b64 %u<4>; ld.global.nc.L2::evict_first.v4.b64 {%u0, %u1, %u2, %u3}, [%a]; cvt.u32.u64 %x, %u0; }",
    "{ .reg .b128 %u; .reg .b64 %v, %w; ld.global.b128 %u, [%a]; mov.b128 {%v, %w}, %u; cvt.u32.u64 %x, %v; }",
]  # fmt: skip
STORES = [
    "st.global.wt.b32 [%o], %x;", "st.global.L1::evict_first.L2::cache_hint.b32 [%o], %x, %q;",
    "st.mmio.relaxed.sys.global.b32 [%o], %x;", "st.release.sys.global.b32 [%o], %x;", "st.volatile.b32 [%o], %x;",
    "st.weak.global.cg.b32 [%o], %x;", "st.async.release.gpu.global.b32 [%o], %x;",
    "st.mmio.release.sys.global.b32 [%o], %x;", "multimem.st.async.release.gpu.global.b32 [%o], %x;",
    "multimem.red.async.release.sys.global.add.u32 [%o], %x;",
    "{ .local .align 4 .b32 own; .reg .b32 %v; st.volatile.local.b32 [own], %x; ld.volatile.local.b32 %v, [own];"
    "st.b32 [%o], %v; }",
]  # fmt: skip


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("uniform", [False, True])
def test_every_spelling_loads_and_stores(load: str, uniform: bool) -> None:
    rows, _ = np.meshgrid(np.arange(64), np.arange(8), indexing="ij")
    source = rows.astype(np.uint32)
    targets = [np.zeros(64, np.uint32) for _ in STORES]
    stores = "\n".join(f"ld.param.u64 %o, [out{k}]; add.u64 %o, %o, %i; {line}" for k, line in enumerate(STORES))
    params = "".join(f", .param .u64 out{k}" for k in range(len(STORES)))
    Rig(f"""
.visible .entry kernel(.param .u64 from{params})
{{
.reg .b64 %a, %o, %i, %j, %q; .reg .b32 %t, %x;
ld.param.u64 %a, [from]; mov.u32 %t, %tid.x; mul.wide.u32 %i, %t, 4; mul.wide.u32 %j, %t, 32;
{"add.u64 %a, %a, 160;" if uniform else "add.u64 %a, %a, %j;"}
createpolicy.fractional.L2::evict_last.b64 %q, 0f3F000000;
prefetch.global.L1 [%a]; prefetch.global.L2::evict_last [%a]; prefetchu.L1 [%a];
applypriority.global.L2::evict_normal [%a], 128;
{load}
{stores}
discard.global.L2 [%a], 128;
ret;
}}""").run([source, *targets], block=(64,))
    for line, target in zip(STORES, targets, strict=True):
        np.testing.assert_array_equal(target, np.full(64, 5) if uniform else np.arange(64), line)


def test_policies_are_made_in_every_way() -> None:
    out = np.full(1, -1, np.int64)
    Rig("""
.visible .entry kernel(.param .u64 out)
{
.reg .b64 %o, %p, %q;
ld.param.u64 %o, [out];
createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %p, [%o], 0x100000, 0x200000;
createpolicy.cvt.L2.b64 %q, %p; xor.b64 %p, %p, %q; st.global.b64 [%o], %p; ret;
}""").run([out])
    assert out[0] == 0


def test_a_cluster_of_one_maps_addresses_to_themselves() -> None:
    out = np.zeros(6, np.uint32)
    Rig("""
.visible .entry kernel(.param .u64 out)
{
.reg .b64 %o, %s, %g, %m; .reg .b32 %x, %r, %t; .reg .pred %p; .shared .b32 room[4];
ld.param.u64 %o, [out]; mov.u32 %t, 9; st.shared.b32 [room+4], %t; bar.sync 0;
mov.u64 %s, room; cvta.shared.u64 %g, %s;
mapa.u64 %m, %g, 0; ld.b32 %x, [%m+4]; st.global.b32 [%o], %x;
mapa.shared::cluster.u64 %m, %s, 0; ld.shared::cluster.b32 %x, [%m+4]; st.global.b32 [%o+4], %x;
getctarank.u64 %r, %g; st.global.b32 [%o+8], %r; getctarank.shared::cluster.u64 %r, %s; st.global.b32 [%o+12], %r;
isspacep.shared::cluster %p, %g; selp.b32 %x, 1, 0, %p; st.global.b32 [%o+16], %x;
isspacep.shared::cta %p, %o; selp.b32 %x, 1, 0, %p; st.global.b32 [%o+20], %x; ret;
}""").run([out])
    np.testing.assert_array_equal(out, [9, 9, 0, 0, 1, 0])


def test_warp_instructions_of_old_modules_need_no_mask() -> None:
    """Before Volta: ``shfl`` and ``vote`` without ``.sync``."""
    out = np.zeros((2, 32), np.uint32)
    Rig(
        """
.version 6.0
.target sm_60
.address_size 64
.visible .entry kernel(.param .u64 out)
{
.reg .b64 %o, %i; .reg .b32 %t, %x, %y, %z; .reg .pred %p, %q;
ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %i, %t, 4; add.u64 %o, %o, %i;
shfl.down.b32 %x|%p, %t, 1, 31; selp.u32 %z, 100, 0, %p; add.u32 %x, %x, %z; st.global.u32 [%o], %x;
setp.gt.u32 %q, %t, 9; vote.ballot.b32 %y, %q; vote.any.pred %p, !%q; selp.u32 %z, 1, 0, %p; add.u32 %y, %y, %z;
vote.all.pred %p, %q; selp.u32 %z, 2, 0, %p; add.u32 %y, %y, %z; st.global.u32 [%o+128], %y;
ret;
}""".lstrip()
    ).run([out])
    np.testing.assert_array_equal(out[0], [k + 101 if k < 31 else 31 for k in range(32)])
    np.testing.assert_array_equal(out[1], np.full(32, (0xFFFFFFFF << 10 & 0xFFFFFFFF) + 1))
