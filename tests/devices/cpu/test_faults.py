"""Faults are stopped and named; the process and the device go on."""

from __future__ import annotations

import time

import numpy as np
import pytest

from teenycli.devices.cpu import CpuDevice
from teenycli.errors import Finding, TeenyError
from teenycli.exits import Exit
from teenycli.launch.plan import Address
from tests.devices.cpu.kit import Array, Rig, interrupted

pytestmark = pytest.mark.unit

HEADER = """
.visible .entry faulty(.param .u64 data, .param .u32 n) {
.reg .b32 %r<20>; .reg .b64 %d<9>; .reg .pred %p<4>; .shared .align 4 .b8 room[128]; .local .align 4 .b8 own[8];
ld.param.u64 %d1, [data]; ld.param.u32 %r1, [n]; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
mad.lo.u32 %r5, %r2, %r3, %r4; mul.wide.u32 %d2, %r5, 4; add.u64 %d3, %d1, %d2;
"""


def fault(
    body: str, *, data: Array | Address | None = None, grid: int = 4, block: int = 32, timeout: float = 20
) -> Finding:
    """The finding of a kernel that must fail; the device must work afterwards."""
    rig = Rig(HEADER + body + "\nret; }")
    given = np.zeros(128, np.uint32) if data is None else data
    with pytest.raises(TeenyError) as caught:
        rig.run([given, 128], grid=(grid,), block=(block,), timeout=timeout)
    assert caught.value.exit is Exit.FAILED
    fine = Rig(HEADER + "st.global.u32 [%d3], %r5; ret; }", device=rig.device)
    out = np.zeros(128, np.uint32)
    fine.run([out, 128], grid=(4,))
    np.testing.assert_array_equal(out, np.arange(128))
    rig.device.close()
    return caught.value.finding


def test_one_element_past_the_end() -> None:
    finding = fault("ld.global.u32 %r6, [%d3+4];\nst.global.u32 [%d3], %r6;")
    assert finding.id == "out-of-bounds"
    assert "kernel 'faulty'" in finding.message
    assert "reads 4 bytes at offset 512 of buffer 'arg0', which has 512 bytes" in finding.message
    assert finding.note is not None
    assert "block (3, 0, 0), thread (31, 0, 0)" in finding.note
    assert finding.where is not None
    assert (finding.where.line, finding.where.text) == (9, "ld.global.u32 %r6, [%d3+4];")


@pytest.mark.parametrize(("line", "offset"), [
    ("st.global.u32 [%d3+4096], %r5;", 4096), ("ld.global.u32 %r6, [%d1+-4];", -4),
    ("ld.global.v4.u32 {%r6, %r7, %r8, %r9}, [%d1+512];", 512), ("atom.global.add.u32 %r6, [%d1+512], 1;", 512),
])  # fmt: skip
def test_far_before_and_wide_accesses(line: str, offset: int) -> None:
    finding = fault(line, grid=1, block=1)
    assert finding.id == "out-of-bounds"
    assert f"at offset {offset} of buffer 'arg0'" in finding.message or offset < 0


def test_a_wild_lane_among_good_ones() -> None:
    finding = fault("setp.eq.u32 %p1, %r5, 77; @%p1 add.u64 %d3, %d3, 1024; ld.global.u32 %r6, [%d3];")
    assert finding.note is not None
    assert "block (2, 0, 0), thread (13, 0, 0)" in finding.note


@pytest.mark.parametrize(
    "place",
    [
        "add.u64 %d4, %d4, %d1; ld.global.u32 %r7, [%d4+-{start}];",
        "sub.u64 %d5, %d1, {start}; add.u64 %d4, %d5, %d4; ld.global.u32 %r7, [%d4];",
    ],
)
@pytest.mark.parametrize(("type", "first"), [("s32", 2**31 - 8), ("u32", 2**32 - 8)])
def test_a_row_of_indices_that_wraps_at_32_bits_is_no_row_of_addresses(type: str, first: int, place: str) -> None:
    index = f"add.u32 %r6, %r4, {first}; mul.wide.{type} %d4, %r6, 4; " + place.format(start=4 * first)
    finding = fault(index, grid=1)
    assert finding.id == "out-of-bounds"
    assert finding.note is not None
    assert "thread (8, 0, 0)" in finding.note
    rig = Rig(HEADER + index + "st.global.u32 [%d3+32], %r7; ret; }")
    data = np.arange(16, dtype=np.uint32)
    rig.run([data, 8], block=(8,))
    rig.device.close()
    np.testing.assert_array_equal(data, [*range(8), *range(8)])


def test_a_parameter_may_point_into_a_buffer_and_to_nothing() -> None:
    body = "setp.lt.u32 %p1, %r4, %r1; @!%p1 bra out; ld.global.u32 %r6, [%d3]; st.global.u32 [%d3], %r5; out:"
    rig = Rig(HEADER + body + "ret; }")
    buffer = rig.device.upload("held", np.zeros(256, np.uint8))
    for address, words in ((buffer.address + 128, 32), (buffer.address + 252, 1)):
        rig.run([address, words])
    found = rig.device.download(buffer).view(np.uint32)
    np.testing.assert_array_equal(found, [0] * 32 + [*range(31), 0])
    for address, id in ((buffer.address + 132, "out-of-bounds"), (buffer.address - 4, "out-of-bounds"), (0, "null-pointer"),
                        (buffer.address + 2, "misaligned")):  # fmt: skip
        with pytest.raises(TeenyError) as caught:
            rig.run([address, 32])
        assert caught.value.finding.id == id
    rig.device.free(buffer)
    with pytest.raises(TeenyError) as caught:
        rig.run([buffer.address, 32])
    assert caught.value.finding.id == "use-after-free"
    rig.device.close()


def test_guarded_lanes_do_not_fault() -> None:
    rig = Rig(HEADER + "setp.lt.u32 %p1, %r5, 100; @%p1 ld.global.u32 %r6, [%d3]; @%p1 st.global.u32 [%d3], %r5;"
              "setp.ge.u32 %p2, %r5, 4000; @%p2 st.global.u32 [%d1+9000], %r5; ret; }")  # fmt: skip
    data = np.full(100, 5, np.uint32)
    rig.run([data, 100], grid=(4,))
    np.testing.assert_array_equal(data, np.arange(100))


def test_misaligned() -> None:
    finding = fault("ld.global.u32 %r6, [%d3+2];")
    assert finding.id == "misaligned"
    assert "offset 2 of buffer 'arg0'" in finding.message
    assert fault("ld.global.v2.u32 {%r6, %r7}, [%d3];").id == "misaligned"
    assert fault("ld.shared.u32 %r6, [room+3];").id == "misaligned"


def test_null_and_freed_pointers() -> None:
    assert fault("ld.global.u32 %r6, [%d3];", data=Address()).id == "null-pointer"
    device = CpuDevice(threads=1, cache=False)
    buffer = device.upload("gone", np.zeros(512, np.uint8))
    address = buffer.address
    device.free(buffer)
    rig = Rig(
        HEADER.replace(".param .u64 data", ".param .u64 data") + "ld.global.u32 %r6, [%d3]; ret; }", device=device
    )
    with pytest.raises(TeenyError) as caught:
        rig.run([address, 1])
    assert caught.value.finding.id == "use-after-free"
    assert "'gone'" in caught.value.finding.message


def test_shared_and_local_overruns_and_const_writes() -> None:
    finding = fault("shl.b32 %r6, %r4, 3; mov.u32 %r7, room; add.u32 %r7, %r7, %r6; st.shared.u32 [%r7], %r4;")
    assert finding.id == "out-of-bounds"
    assert "offset 128 of shared memory, which has 128 bytes" in finding.message
    assert finding.note is not None
    assert "thread (16, 0, 0)" in finding.note
    assert "local memory" in fault("st.local.u32 [own+8], %r4;").message
    rig = Rig(
        ".const .align 4 .u32 fixed = 1; .visible .entry k() { .reg .b64 %d; mov.u64 %d, fixed; st.u32 [%d], 2; ret; }"
    )
    with pytest.raises(TeenyError) as caught:
        rig.run([])
    assert caught.value.finding.id == "read-only"


def test_line_of_the_source_is_named() -> None:
    finding = fault('.file 1 "kernel.cu"\n.loc 1 42 7\nst.global.u32 [%d3+8192], %r4;')
    assert finding.note is not None
    assert "kernel.cu:42:7" in finding.note


def test_trap() -> None:
    finding = fault("setp.eq.u32 %p1, %r5, 70; @%p1 trap;")
    assert finding.id == "trap"
    assert finding.note is not None
    assert "block (2, 0, 0), thread (6, 0, 0)" in finding.note


def test_barrier_missed_by_a_warp_is_a_deadlock() -> None:
    started = time.monotonic()
    finding = fault("setp.lt.u32 %p1, %r4, 32; @%p1 bra wait; bar.sync 1;\nwait: bar.sync 0;", block=64, grid=2)
    assert finding.id == "deadlock"
    assert "bar.sync" in finding.message
    assert time.monotonic() - started < 5


def test_endless_loop_ends_with_the_timeout() -> None:
    started = time.monotonic()
    finding = fault("again: add.u32 %r6, %r6, 1;\nsetp.ne.u32 %p1, %r1, 5;\n@%p1 bra again;", timeout=0.3)
    assert finding.id == "timeout"
    assert finding.where is not None
    assert finding.where.line == 11
    assert time.monotonic() - started < 3


def test_interrupt_ends_a_kernel() -> None:
    rig = Rig(HEADER + "again: setp.ne.u32 %p1, %r4, 99; @%p1 bra again; ret; }")
    rig.device.load(rig.module, rig.module.entries[0].name)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt), interrupted(0.5):
        rig.run([np.zeros(128, np.uint32), 1], timeout=0)
    assert time.monotonic() - started < 2.5


def test_branch_past_its_table() -> None:
    finding = fault(
        "t: .branchtargets a, b; add.u32 %r6, %r4, 0; brx.idx %r6, t; a: mov.u32 %r7, 1; b: mov.u32 %r7, 2;"
    )
    assert finding.id == "bad-branch"


def test_sixty_faults_leave_the_device_whole() -> None:
    device = CpuDevice(threads=2, cache=False)
    rig = Rig(HEADER + "st.global.u32 [%d3+512], %r5; ret; }", device=device)
    kernel = Rig(HEADER + "st.global.u32 [%d3], %r5; ret; }", device=device)
    for _ in range(60):
        with pytest.raises(TeenyError):
            rig.run([np.zeros(128, np.uint32), 128], grid=(64,))
    out = np.zeros(128, np.uint32)
    kernel.run([out, 128], grid=(4,))
    np.testing.assert_array_equal(out, np.arange(128))
