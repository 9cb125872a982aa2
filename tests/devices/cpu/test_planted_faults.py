"""Every planted fault is named rightly, and the process lives on."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

from teenycli.devices.cpu import CpuDevice
from teenycli.errors import Finding, TeenyError
from teenycli.exits import Exit
from tests.devices.cpu.kit import Rig
from tests.devices.cpu.planted import CUDA, ENTRY, HEAD, PLANTED, Planted

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def good() -> Iterator[Rig]:
    """A kernel without a fault, on the device that all the others run on."""
    device = CpuDevice(threads=2, cache=False)
    yield Rig(
        f"{HEAD}{ENTRY}ld.global.u32 %r3, [%at]; add.u32 %r3, %r3, %n; st.global.u32 [%to], %r3; ret; }}", device=device
    )
    device.close()


def run(planted: Planted, device: CpuDevice) -> Finding:
    """The finding that a planted fault ends in."""
    rig = Rig(planted.module, device=device, name="planted.ptx")
    given = np.arange(128, dtype=np.uint32)
    with pytest.raises(TeenyError) as caught:
        rig.run([given, np.zeros(128, np.uint32), planted.n], grid=planted.grid, block=planted.block,
                shared=planted.shared, timeout=planted.timeout, cluster=planted.cluster,
                entry=planted.text if planted.is_cuda else None)  # fmt: skip
    assert caught.value.exit is Exit.FAILED
    return caught.value.finding


@pytest.mark.parametrize("planted", PLANTED, ids=[p.name for p in PLANTED])
def test_a_planted_fault_is_named(planted: Planted, good: Rig) -> None:
    finding = run(planted, good.device)
    assert finding.id == planted.id
    kernel = planted.text if planted.is_cuda else "faulty"
    assert finding.message.startswith(f"kernel '{kernel}'")
    assert planted.says in finding.message
    check_place(planted, finding)
    out = np.zeros(128, np.uint32)
    good.run([np.arange(128, dtype=np.uint32), out, 128], grid=(4,), block=(32,))
    np.testing.assert_array_equal(out, np.arange(128) + 128)


def test_a_buffer_that_the_host_has_freed(good: Rig) -> None:
    device = good.device
    buffer = device.upload("gone", np.zeros(512, np.uint8))
    device.free(buffer)
    rig = Rig(f"{HEAD}{ENTRY}st.global.u32 [%to+4096], %t; ret; }}", device=device)
    with pytest.raises(TeenyError) as caught:
        rig.run([np.zeros(128, np.uint32), buffer.address, 128])
    finding = caught.value.finding
    assert finding.id == "use-after-free"
    assert "writes 4 bytes of buffer 'gone', which has been freed" in finding.message
    assert finding.note == "block (0, 0, 0), thread (0, 0, 0)"


def test_division_by_zero_is_no_fault(good: Rig) -> None:
    """The quotient is all ones, as the hardware gives it."""
    rig = Rig(CUDA.with_suffix(".ptx").read_text(), device=good.device)
    out = np.zeros(128, np.int32)
    rig.run([np.zeros(128, np.uint32), out, 128], block=(128,), entry="division_by_zero")
    np.testing.assert_array_equal(out, np.full(128, -1))


def test_there_are_as_many_as_we_say() -> None:
    assert len(PLANTED) >= 100
    assert len({planted.name for planted in PLANTED}) == len(PLANTED)


def check_place(planted: Planted, finding: Finding) -> None:
    """The finding names the line of the PTX and of the source, block, thread and function."""
    where, note = finding.where, finding.note
    assert where is not None
    assert note is not None
    lines = planted.module.splitlines()
    assert where.file == "planted.ptx"
    assert where.text == lines[where.line - 1]
    if planted.is_cuda:
        locs = [re.match(r"\s*\.loc\s+\d+ (\d+) (\d+)", line) for line in lines[: where.line]]
        line, column = [loc for loc in locs if loc][-1].groups()
        assert re.search(rf", [^,]*:{line}:{column}", note)
        assert f"{CUDA.name}:{planted.source_line}:" in note
    else:
        assert where.line == planted.ptx_line
        assert ("\n.loc" in planted.text) == ("some/kernel.cu:42:7" in note)
    block, thread = re.match(r"block \((.*?)\), thread \((.*?)\)", note).groups()  # type: ignore[union-attr]
    assert planted.cta is None or block == ", ".join(map(str, planted.cta))
    assert planted.thread is None or thread == ", ".join(map(str, planted.thread))
    assert (planted.function is None) == ("in function" not in note)
    assert planted.function is None or f"in function '{planted.function}'" in note
