"""Special registers: those of the launch by thread, the constants, and clocks that go forward."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tests.devices.cpu.kit import Array, Rig

pytestmark = pytest.mark.unit


def read(*registers: str, grid: tuple[int, ...] = (2, 3, 2), block: tuple[int, ...] = (8, 4, 2)) -> dict[str, Array]:
    """The value of each register in each thread, in the order of CTAs and threads."""
    count = int(np.prod(grid) * np.prod(block))
    lines = []
    for k, register in enumerate(registers):
        wide = register in ("%clock64", "%globaltimer", "%current_graph_exec") or register.endswith("_64")
        mov = f"mov.u64 %w, {register};" if wide else f"mov.u32 %x, {register}; cvt.u64.u32 %w, %x;"
        if register == "%is_explicit_cluster":
            mov = "mov.pred %p, %is_explicit_cluster; selp.u64 %w, 1, 0, %p;"
        lines.append(f"{mov} st.global.u64 [%o+{8 * count * k}], %w;")
    rig = Rig(f"""
.visible .entry kernel(.param .u64 out)
{{
.reg .b64 %o, %i, %w; .reg .b32 %c, %n, %t, %x; .reg .pred %p;
mov.u32 %c, %ctaid.z; mov.u32 %n, %nctaid.y; mov.u32 %x, %ctaid.y; mad.lo.u32 %c, %c, %n, %x;
mov.u32 %n, %nctaid.x; mov.u32 %x, %ctaid.x; mad.lo.u32 %c, %c, %n, %x;
mov.u32 %t, %tid.z; mov.u32 %n, %ntid.y; mov.u32 %x, %tid.y; mad.lo.u32 %t, %t, %n, %x;
mov.u32 %n, %ntid.x; mov.u32 %x, %tid.x; mad.lo.u32 %t, %t, %n, %x;
mad.lo.u32 %c, %c, {int(np.prod(block))}, %t; mul.wide.u32 %i, %c, 8; ld.param.u64 %o, [out]; add.u64 %o, %o, %i;
{chr(10).join(lines)}
ret;
}}""")
    out = np.zeros((len(registers), count), np.uint64)
    rig.run([out], grid=grid, block=block)
    return dict(zip(registers, out, strict=True))


def test_places_of_threads_and_ctas() -> None:
    got = read(*(f"{name}.{axis}" for name in ("%tid", "%ntid", "%ctaid", "%nctaid") for axis in "xyz"))
    z, y, x, c, b, a = (g.reshape(-1) for g in np.meshgrid(*map(np.arange, (2, 3, 2, 2, 4, 8)), indexing="ij"))
    for name, wanted in (("%ctaid", (x, y, z)), ("%tid", (a, b, c)), ("%ntid", (8, 4, 2)), ("%nctaid", (2, 3, 2))):
        for axis, values in zip("xyz", wanted, strict=True):
            np.testing.assert_array_equal(got[f"{name}.{axis}"], values, f"{name}.{axis}")


def test_lanes_and_warps() -> None:
    got = read("%laneid", "%warpid", "%nwarpid", *(f"%lanemask_{k}" for k in ("eq", "lt", "le", "gt", "ge")),
               grid=(1, 1, 1), block=(96, 1, 1))  # fmt: skip
    lane = np.arange(96, dtype=np.uint64) % 32
    bit = np.uint64(1) << lane
    np.testing.assert_array_equal(got["%laneid"], lane)
    np.testing.assert_array_equal(got["%warpid"], np.arange(96) // 32)
    assert (got["%nwarpid"] >= 3).all()
    full = np.uint64(2**32 - 1)
    wanted = {"eq": bit, "lt": bit - 1, "le": bit | bit - 1, "ge": full & ~(bit - 1), "gt": full & ~(bit | bit - 1)}
    for kind, values in wanted.items():
        np.testing.assert_array_equal(got[f"%lanemask_{kind}"], values, kind)


def test_a_cluster_of_one_and_what_no_driver_sets() -> None:
    zero = ["%cluster_ctarank", "%cluster_ctaid.y", "%is_explicit_cluster", "%smid", "%envreg0", "%envreg31", "%pm0",
            "%pm7", "%pm3_64", "%current_graph_exec"]  # fmt: skip
    one = ["%cluster_nctarank", "%cluster_nctaid.x", "%cluster_nctaid.z", "%nsmid"]
    got = read(*zero, *one, "%clusterid.x", "%ctaid.x", "%nclusterid.z")
    assert not any(got[name].any() for name in zero)
    assert all((got[name] == 1).all() for name in one)
    np.testing.assert_array_equal(got["%clusterid.x"], got["%ctaid.x"])
    assert (got["%nclusterid.z"] == 2).all()


def test_the_timer_counts_nanoseconds_and_clocks_go_forward() -> None:
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) if hasattr(time, "clock_gettime_ns") else time.monotonic_ns()
    out = np.zeros((6, 64), np.uint64)
    Rig("""
.visible .entry kernel(.param .u64 out)
{
.reg .b64 %o, %i, %w; .reg .b32 %t, %k; .reg .pred %p;
ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %i, %t, 8; add.u64 %o, %o, %i; mov.u32 %k, 0;
mov.u64 %w, %globaltimer; st.global.u64 [%o], %w; mov.u64 %w, %clock64; st.global.u64 [%o+512], %w;
wait: add.u32 %k, %k, 1; st.global.u32 [%o+2560], %k; setp.lt.u32 %p, %k, 20000; @%p bra wait;
mov.u64 %w, %clock64; st.global.u64 [%o+1024], %w;
mov.u64 %w, %globaltimer; st.global.u64 [%o+1536], %w;
mov.u32 %t, %globaltimer_hi; mov.u32 %k, %globaltimer_lo; mov.b64 %w, {%k, %t}; st.global.u64 [%o+2048], %w;
ret;
}""").run([out], block=(64,))
    after = time.clock_gettime_ns(time.CLOCK_MONOTONIC) if hasattr(time, "clock_gettime_ns") else time.monotonic_ns()
    start, first, second, stop, halves = out[:5]
    assert (second > first).all()
    assert (stop > start).all()
    assert (halves >= stop).all()
    assert (halves - stop < 10**9).all()
    if hasattr(time, "clock_gettime_ns"):
        assert before <= start.min()
        assert halves.max() <= after


@pytest.mark.parametrize("name", ["%lanemask_ge", "%lanemask_gt", "%lanemask_le"])
def test_a_special_register_that_is_kept_is_no_number_whose_nans_are_alike(name: str) -> None:
    """The bits of a mask may be those of a NaN; they are the same after a barrier, where cells are in memory."""
    rig = Rig(
        f"""
        .visible .entry k(.param .u64 out) {{
        .reg .b32 %r<5>; .reg .b64 %d<3>;
        mov.u32 %r1, {name}; add.u32 %r2, %r1, 1; bar.sync 0; sub.u32 %r3, %r1, %r2;
        mov.u32 %r4, %tid.x; ld.param.u64 %d1, [out]; mad.wide.u32 %d1, %r4, 4, %d1; st.global.b32 [%d1], %r3; ret; }}
        """
    )
    out = np.zeros(32, np.int32)
    rig.run([out])
    assert (out == -1).all()
    rig.device.close()
