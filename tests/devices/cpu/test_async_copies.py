"""cp.async, mbarriers, bulk copies: as nvcc makes them, and form by form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from teenycli.errors import TeenyError
from teenycli.exits import Exit
from tests.devices.cpu.kit import Array, Rig

pytestmark = pytest.mark.unit

NVCC = Path(__file__).parent.parent.parent / "corpus" / "nvcc"


def kernel(body: str, *args: Array | int, block: int = 64, timeout: float = 20) -> None:
    text = (
        ".visible .entry k(.param .u64 in, .param .u64 out) { .reg .b64 %d<16>; .reg .b32 %r<16>; .reg .pred %p<4>;\n"
        ".shared .align 16 .b8 stage[4096]; .shared .align 8 .b64 bar; mov.u32 %r1, %tid.x; ld.param.u64 %d1, [in];\n"
        "ld.param.u64 %d2, [out]; mul.wide.u32 %d3, %r1, 16; add.u64 %d1, %d1, %d3; mov.u32 %r2, stage;\n"
        "mad.lo.u32 %r2, %r1, 16, %r2; mad.wide.u32 %d2, %r1, 4, %d2; mov.u32 %r9, 0; setp.eq.u32 %p3, %r1, 0;\n"
    )
    rig = Rig(text + body + "\nst.global.u32 [%d2], %r9; ret; }")
    try:
        rig.run(args, block=(block,), timeout=timeout)
    finally:
        rig.device.close()


def test_copies_in_groups_as_nvcc_makes_them() -> None:
    x = np.random.default_rng(0).standard_normal((128, 4)).astype(np.float32)
    y = np.zeros((128, 4), np.float32)
    rig = Rig((NVCC / "async_copy.ptx").read_text())
    rig.run([x, y], block=(64,), entry="copy_in")
    np.testing.assert_array_equal(y[:64], x[:64][np.arange(64) ^ 1])
    words = y[64:].view(np.uint32)[:, 0]
    np.testing.assert_array_equal(words, x[64:].view(np.uint32)[:, 0] & 0xFFFF)
    rig.device.close()


@pytest.mark.parametrize("block", [1, 32, 100, 128])
def test_a_barrier_of_libcu_waits_for_copies(block: int) -> None:
    rig = Rig((NVCC / "async_copy.ptx").read_text())
    name = next(f.name for f in rig.module.entries if "through_barrier" in f.name)
    x, y = np.arange(block, dtype=np.int32) * 3, np.zeros(block, np.int32)
    rig.run([x, y], block=(block,), entry=name)
    np.testing.assert_array_equal(y, x[::-1])
    rig.device.close()


@pytest.mark.parametrize(("size", "count"), [(4, 4), (4, 3), (4, 0), (8, 8), (8, 5), (16, 16), (16, 7), (16, 0)])
def test_bytes_that_are_not_copied_are_zero(size: int, count: int) -> None:
    data = np.random.default_rng(size).integers(1, 255, (64, 16)).astype(np.uint8)
    for given in (str(count), "%r3"):
        out = np.zeros(64 * 4, np.uint32)
        kernel(
            f"mov.u32 %r3, {count}; st.shared.v4.u32 [%r2], {{%r1, %r1, %r1, %r1}};\n"
            f"cp.async.ca.shared.global [%r2], [%d1], {size}, {given}; cp.async.wait_all;\n"
            "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2]; mad.wide.u32 %d2, %r1, 12, %d2;\n"
            "st.global.v4.u32 [%d2], {%r4, %r5, %r6, %r7}; mov.u32 %r9, %r4;",
            data, out,
        )  # fmt: skip
        wanted = np.repeat(np.arange(64, dtype=np.uint32), 4).view(np.uint8).reshape(64, 16).copy()
        wanted[:, :size] = 0
        wanted[:, :count] = data[:, :count]
        np.testing.assert_array_equal(out.view(np.uint8).reshape(64, 16), wanted)


def test_copies_that_some_lanes_ignore_do_not_read() -> None:
    data, out = np.arange(32 * 4, dtype=np.uint32), np.zeros(64, np.uint32)
    kernel(
        "setp.ge.u32 %p1, %r1, 32; cp.async.cg.shared.global [%r2], [%d1], 16, %p1; cp.async.commit_group;\n"
        "cp.async.wait_group 0; ld.shared.u32 %r9, [%r2+4];",
        data, out,
    )  # fmt: skip
    np.testing.assert_array_equal(out, [4 * t + 1 if t < 32 else 0 for t in range(64)])


def test_phases_of_an_mbarrier() -> None:
    """Tokens, counts, bytes to come, dropped arrivals and parities, one thread alone."""
    out = np.zeros(1, np.uint32)
    checks = [
        ("mbarrier.init.shared::cta.b64 [bar], 3;", "mbarrier.test_wait.parity.shared.b64 %p1, [bar], 1;", True),
        ("", "mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0;", False),
        ("mbarrier.arrive.shared.b64 %d4, [bar], 2;", "mbarrier.test_wait.shared.b64 %p1, [bar], %d4;", False),
        ("mbarrier.pending_count.b64 %r4, %d4;", "setp.eq.u32 %p1, %r4, 3;", True),
        ("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 64; mbarrier.arrive.shared.b64 %d5, [bar];",
         "mbarrier.test_wait.shared.b64 %p1, [bar], %d5;", False),
        ("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 64;",
         "mbarrier.test_wait.shared.b64 %p1, [bar], %d5;", True),
        ("mbarrier.arrive_drop.shared.b64 %d4, [bar]; mbarrier.arrive.shared.b64 %d4, [bar], 2;",
         "mbarrier.try_wait.parity.shared.b64 %p1, [bar], 1, %r1;", True),
        ("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %d4, [bar], 8; mbarrier.arrive.shared.b64 %d5, [bar];",
         "mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0;", False),
        ("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 8;",
         "mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0;", True),
        ("cp.async.mbarrier.arrive.shared.b64 [bar]; cp.async.mbarrier.arrive.noinc.shared.b64 [bar];"
         "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];", "mbarrier.test_wait.parity.shared.b64 %p1, [bar], 1;", True),
    ]  # fmt: skip
    body = "\n".join(
        f"{before} {test} selp.u32 %r5, 1, 0, %p1; shl.b32 %r5, %r5, {k}; or.b32 %r9, %r9, %r5;"
        for k, (before, test, _) in enumerate(checks)
    )
    kernel(body, np.zeros(4, np.uint32), out, block=1)
    assert [bool(out[0] >> k & 1) for k in range(len(checks))] == [wanted for *_, wanted in checks]


def test_warps_wait_for_a_producer_round_after_round() -> None:
    """Two mbarriers as full and empty, one warp that fills and three that use what it wrote."""
    out = np.zeros(128, np.uint32)
    kernel(
        """
        .shared .align 8 .b64 empty; .shared .align 4 .u32 box;
        @%p3 mbarrier.init.shared.b64 [bar], 1; @%p3 mbarrier.init.shared.b64 [empty], 96; bar.sync 0;
        mov.u32 %r10, 0; mov.u32 %r11, 0; setp.lt.u32 %p1, %r1, 32; @%p1 bra producer;
        consumer: mbarrier.try_wait.parity.shared.b64 %p2, [bar], %r11; @!%p2 bra consumer;
        ld.shared.u32 %r12, [box]; add.u32 %r9, %r9, %r12; mbarrier.arrive.shared.b64 %d4, [empty];
        xor.b32 %r11, %r11, 1; add.u32 %r10, %r10, 1; setp.lt.u32 %p2, %r10, 20; @%p2 bra consumer; bra done;
        producer: @!%p3 bra done;
        fill: st.shared.u32 [box], %r10; mbarrier.arrive.shared.b64 %d4, [bar];
        free: mbarrier.try_wait.parity.shared.b64 %p2, [empty], %r11; @!%p2 bra free;
        xor.b32 %r11, %r11, 1; add.u32 %r10, %r10, 1; setp.lt.u32 %p2, %r10, 20; @%p2 bra fill;
        done:
        """,
        np.zeros(4, np.uint32), out, block=128,
    )  # fmt: skip
    np.testing.assert_array_equal(out, [0] * 32 + [190] * 96)


def test_bulk_copies_complete_the_bytes_they_bring() -> None:
    data, out = np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)
    kernel(
        """
        mov.u32 %r3, stage; ld.param.u64 %d5, [in]; ld.param.u64 %d6, [out]; mov.u32 %r4, 1024;
        @%p3 mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster; bar.sync 0; @!%p3 bra wait;
        mbarrier.arrive.expect_tx.shared::cta.b64 %d4, [bar], 1024;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%d5], %r4, [bar];
        wait: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra wait;
        ld.shared.u32 %r9, [%r2]; bar.sync 0; fence.proxy.async.shared::cta; @!%p3 bra stored;
        cp.async.bulk.global.shared::cta.bulk_group [%d6], [%r3], 1024; cp.async.bulk.commit_group;
        cp.async.bulk.wait_group.read 0;
        stored: bar.sync 0;
        """,
        data, out,
    )  # fmt: skip
    np.testing.assert_array_equal(out, np.where(np.arange(256) < 64, 4 * np.arange(256), np.arange(256)))


@pytest.mark.parametrize(("body", "id"), [
    ("cp.async.cg.shared.global [%r2], [%d1+16384], 16;", "out-of-bounds"),
    ("cp.async.cg.shared.global [%r2+8], [%d1], 16;", "misaligned"),
    ("cp.async.ca.shared.global [%r2+8192], [%d1], 4;", "out-of-bounds"),
    ("@%p3 mbarrier.init.shared.b64 [bar], 0;", "bad-mbarrier"),
    ("@%p3 mbarrier.init.shared.b64 [bar], 1; @%p3 mbarrier.arrive.shared.b64 %d4, [bar], 2;", "bad-mbarrier"),
    ("mov.u32 %r3, 1024; @%p3 mbarrier.init.shared.b64 [bar], 1;"
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d1], %r3, [bar];", "out-of-bounds"),
    ("mbarrier.init.shared.b64 [bar], 1; wait: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra wait;",
     "deadlock"),
])  # fmt: skip
def test_faults_of_copies_and_mbarriers(body: str, id: str) -> None:
    with pytest.raises(TeenyError) as caught:
        kernel(body, np.zeros(256, np.uint32), np.zeros(64, np.uint32), timeout=0.5)
    assert (caught.value.finding.id, caught.value.exit) == (id, Exit.FAILED)


def test_addresses_of_mbarriers_in_registers() -> None:
    """That of a bulk copy is in shared memory; of a store without a space both addresses are generic."""
    data, out = np.arange(256, dtype=np.uint32), np.zeros(64, np.uint32)
    kernel(
        """
        mov.u32 %r3, stage; mov.u32 %r10, bar; ld.param.u64 %d5, [in]; mov.u64 %d6, bar; cvta.shared.u64 %d6, %d6;
        mov.u64 %d7, stage; cvta.shared.u64 %d7, %d7; @%p3 mbarrier.init.shared.b64 [%r10], 1; bar.sync 0;
        @!%p3 bra wait; mbarrier.arrive.expect_tx.shared.b64 %d4, [%r10], 68;
        cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r3], [%d5], 64, [%r10];
        st.async.mbarrier::complete_tx::bytes.b32 [%d7+64], 77, [%d6];
        wait: mbarrier.try_wait.parity.shared.b64 %p1, [%r10], 0; @!%p1 bra wait; ld.shared.u32 %r9, [%r2];
        """,
        data, out,
    )  # fmt: skip
    np.testing.assert_array_equal(out[:5], [0, 4, 8, 12, 77])
