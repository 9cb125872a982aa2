"""``bar.warp.sync`` where the lanes of a warp run different code."""

from __future__ import annotations

import numpy as np
import pytest

from teenycli.errors import TeenyError
from tests.devices.cpu.kit import Rig

pytestmark = pytest.mark.unit

HEAD = """
.visible .entry k(.param .u64 out) {
.reg .b64 %d<3>; .reg .b32 %r<12>, %n; .reg .pred %p<5>; .shared .align 4 .u32 box[64]; .shared .align 4 .u32 flag;
ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %d1, %r1, 4, %d1; mov.u32 %r2, %laneid; mov.u32 %r3, box;
mov.u32 %r4, %warpid; mad.lo.u32 %r3, %r4, 128, %r3; mad.lo.u32 %r5, %r2, 4, %r3; setp.lt.u32 %p1, %r2, 16;
"""
TAIL = "end: st.global.u32 [%d1], %r6; ret; }"


def run(body: str, block: int = 64, timeout: float = 20) -> list[int]:
    out = np.zeros(block, np.uint32)
    rig = Rig(HEAD + body + TAIL)
    try:
        rig.run([out], block=(block,), timeout=timeout)
    finally:
        rig.device.close()
    return [int(value) for value in out]


WRITES = "add.u32 %r7, %r2, 100; st.shared.u32 [%r5], %r7; bar.warp.sync -1; mov.u32 %r6, 1;"
READS = "bar.warp.sync -1; sub.u32 %r8, %r5, 64; ld.shared.u32 %r6, [%r8];"


@pytest.mark.parametrize("first", ["writers", "readers"])
def test_readers_wait_for_writers_whichever_branch_comes_first(first: str) -> None:
    if first == "writers":
        body = f"@!%p1 bra other; {WRITES} bra end; other: {READS}"
    else:
        body = f"@%p1 bra other; {READS} bra end; other: {WRITES}"
    assert run(body) == [*[1] * 16, *range(100, 116)] * 2


def test_each_round_of_a_loop_meets_on_its_own() -> None:
    """Writer lanes go round one loop, readers round another; two barriers a round keep them in step."""
    body = """
    mov.u32 %n, 0; mov.u32 %r6, 0; @!%p1 bra reads;
    writes: mad.lo.u32 %r7, %n, 50, %r2; st.shared.u32 [%r5], %r7; bar.warp.sync -1; bar.warp.sync -1;
    add.u32 %n, %n, 1; setp.lt.u32 %p2, %n, 5; @%p2 bra writes; bra end;
    reads: bar.warp.sync -1; ld.shared.u32 %r8, [%r5+-64]; add.u32 %r6, %r6, %r8; bar.warp.sync -1;
    add.u32 %n, %n, 1; setp.lt.u32 %p2, %n, 5; @%p2 bra reads;
    """
    assert run(body) == [*[0] * 16, *(500 + 5 * lane for lane in range(16))] * 2


def test_lanes_that_are_not_named_are_not_waited_for() -> None:
    """Quarters meet in pairs, while the others are still on their way or gone."""
    body = """
    mov.u32 %r6, 0; setp.ge.u32 %p2, %r2, 24; @%p2 exit; setp.ge.u32 %p3, %r2, 8; @%p3 bra middle;
    st.shared.u32 [%r5], %r2; bar.warp.sync 0xffff; mov.u32 %r6, 7; bra end;
    middle: setp.ge.u32 %p4, %r2, 16; @%p4 bra high; bar.warp.sync 0xffff; ld.shared.u32 %r6, [%r5+-32]; bra end;
    high: bar.warp.sync 0xffff0000; mov.u32 %r6, 9;
    """
    assert run(body) == [*[7] * 8, *range(8), *[9] * 8, *[0] * 8] * 2


def test_lanes_meet_while_another_spins() -> None:
    """Lane 31 waits for a flag that is set only after the others have met."""
    body = """
    mov.u32 %r6, 3; setp.eq.u32 %p2, %r2, 31; @%p2 bra spin; @%p1 bra low;
    bar.warp.sync 0x7fffffff; setp.eq.u32 %p3, %r2, 20; @%p3 st.volatile.shared.u32 [flag], 5; bra end;
    low: bar.warp.sync 0x7fffffff; mov.u32 %r6, 4; bra end;
    spin: ld.volatile.shared.u32 %r6, [flag]; setp.eq.u32 %p3, %r6, 0; @%p3 bra spin;
    """
    assert run(body, block=32) == [*[4] * 16, *[3] * 15, 5]


def test_it_mixes_with_barriers_of_the_cta() -> None:
    body = f"@!%p1 bra other; {WRITES} bar.sync 0; bra end; other: {READS} bar.sync 0;"
    assert run(body) == [*[1] * 16, *range(100, 116)] * 2


def test_lanes_that_nobody_meets_are_a_deadlock() -> None:
    body = "mov.u32 %r6, 0; @!%p1 bra other; bar.warp.sync -1; bar.sync 1, 32; bra end; other: bar.sync 1, 32;"
    with pytest.raises(TeenyError) as caught:
        run(body, block=32)
    assert caught.value.finding.id == "deadlock"
    assert "'bar.warp.sync'" in caught.value.finding.message or "'bar.sync'" in caught.value.finding.message
