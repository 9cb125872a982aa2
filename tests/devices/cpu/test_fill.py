"""st.bulk, and the asynchronous store that signals nobody."""

from __future__ import annotations

import numpy as np
import pytest

from teenycli.errors import TeenyError
from tests.devices.cpu.kit import Rig

pytestmark = pytest.mark.unit


def rig(fill: str) -> Rig:
    return Rig(f"""
.visible .entry kernel(.param .u64 memory)
{{
.reg .b64 %m, %i, %s, %w, %z; .reg .b32 %t, %x; .reg .pred %p; .shared .align 16 .b8 room[256];
ld.param.u64 %m, [memory]; mov.u32 %t, %tid.x; mul.wide.u32 %i, %t, 4; mov.u64 %s, room; add.u64 %w, %s, %i;
add.u64 %m, %m, %i; not.b32 %x, %t; st.shared.b32 [%w], %x; bar.sync 0; setp.eq.u32 %p, %t, 40;
{fill}
bar.sync 0; ld.shared.b32 %x, [%w]; st.async.release.gpu.global.b32 [%m], %x; ret;
}}""")


@pytest.mark.parametrize("fill", [
    "@%p st.bulk.shared::cta [room+16], 64, 0;",
    "add.u64 %z, %s, 8; mov.u64 %i, 64; @%p st.bulk.weak.shared::cta [%z+8], %i, 0;",
    "mov.u32 %x, room; sub.u32 %x, %x, 512; @%p st.bulk.shared::cta [%x+528], 64, 0;",
    "cvta.shared.u64 %z, %s; mov.u64 %i, 71; @%p st.bulk [%z+16], %i, 0;",
])  # fmt: skip
def test_shared_memory_is_set_to_zero(fill: str) -> None:
    memory = np.zeros(64, np.int32)
    rig(fill).run([memory], block=(64,))
    wanted = ~np.arange(64)
    wanted[4:20] = 0
    np.testing.assert_array_equal(memory, wanted)


def test_sizes_differ_by_lane() -> None:
    memory = np.zeros(64, np.int32)
    lines = "and.b32 %x, %t, 15; setp.eq.u32 %p, %x, 0; cvt.u64.u32 %z, %t; @%p st.bulk.shared::cta [%w], %z, 0;"
    rig(lines).run([memory], block=(64,))
    wanted = ~np.arange(64)
    for thread in (16, 32, 48):
        wanted[thread : thread + thread // 4] = 0
    np.testing.assert_array_equal(memory, wanted)


def test_the_end_of_shared_memory_is_a_fault() -> None:
    with pytest.raises(TeenyError) as error:
        rig("@%p st.bulk.shared::cta [room+240], 24, 0;").run([np.zeros(64, np.int32)], block=(64,))
    assert error.value.finding.id == "out-of-bounds"
    assert "256" in error.value.finding.message
