"""What a footprint notes of accesses: the first that misses, elements that two blocks write, blocks that do nothing."""

from __future__ import annotations

import pytest

from tests.footprint.kit import case, contested, out

pytestmark = pytest.mark.device

OWN_Y = "add.u64 %d2,%y,%d0; st.global.u32 [%d2],%i;"


class TestContested:
    def test_what_every_block_writes_at_one_place(self) -> None:
        assert contested(case("st.global.u32 [%y],%i;", y=out(4), grid=(3,)).trace()) == {0}
        assert contested(case("st.global.u32 [%y],%i;", y=out(4), grid=(1,)).trace()) == set()
