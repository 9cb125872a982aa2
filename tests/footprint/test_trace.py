"""What a footprint notes of accesses: the first that misses, elements that two blocks write, blocks that do nothing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.footprint.kit import Room, case, contested, misses, out, read, sound, written

pytestmark = pytest.mark.device

OWN_Y = "add.u64 %d2,%y,%d0; st.global.u32 [%d2],%i;"


class TestContested:
    def test_what_every_block_writes_at_one_place(self) -> None:
        assert contested(case("st.global.u32 [%y],%i;", y=out(4), grid=(3,)).trace()) == {0}
        assert contested(case("st.global.u32 [%y],%i;", y=out(4), grid=(1,)).trace()) == set()

    def test_not_what_they_may_write(self) -> None:
        body = "{} ld.global.u32 %r1,[%x]; setp.eq.u32 %p1,%r1,0; @%p1 st.global.u32 [{}],%i;"
        for start, at in (
            ("", "%y"), ("mul.wide.u32 %d3,%r0,%cta; shl.b64 %d3,%d3,2; sub.u64 %d2,%y,%d3; add.u64 %d2,%d2,%d0;", "%d2"),
        ):  # fmt: skip
            trace = case(body.format(start, at), x=Room(1), y=out(256), grid=(3,)).trace()
            assert written(trace)
            assert contested(trace) == set()
            assert contested(case(f"{start} st.global.u32 [{at}],%i;", y=out(256), grid=(3,)).trace())


class TestShared:
    def test_dynamic_memory_begins_at_its_alignment_and_has_all_its_bytes(self) -> None:
        body = ".shared .b8 own[20]; mov.u32 %r1,dyn; {} ld.shared.u32 %r2,[%r1+{}];" + OWN_Y
        head = ".extern .shared .align 16 .b8 dyn[];"
        keep = "st.shared.u8 [own],1;"
        assert not sound(case(body.format(keep, 12), head=head, shared=16, y=out(32)), exact=True).misses
        (miss,) = misses(sound(case(body.format(keep, 16), head=head, shared=16, y=out(32))))
        assert (miss.problem, miss.offset, miss.size, miss.end) == ("shared", 48, 4, 52)

    def test_what_lies_before_it_has_an_offset_below_zero(self) -> None:
        body = ".shared .align 4 .b8 own[16]; mov.u32 %r1,own; ld.shared.u32 %r2,[%r1+-4];" + OWN_Y
        (miss,) = misses(sound(case(body, y=out(32))))
        assert (miss.problem, miss.offset, miss.end) == ("shared", -4, 0)


class TestAsyncCopies:
    SETUP = """.shared .align 16 .b8 own[512]; mov.u32 %r1,own; shl.b32 %r2,%i,4; add.u32 %r1,%r1,%r2; shl.b64 %d1,%d0,2;
        add.u64 %d1,%x,%d1;"""

    @pytest.mark.parametrize(
        ("end", "wanted", "sure"),
        [
            ("", range(128), True),
            (".L2::cache_hint [%r1],[%d1],16,%d3", range(128), True),
            ("[%r1],[%d1],16,0", [], True),
            ("[%r1],[%d1],16,16", range(128), True),
            ("[%r1],[%d1],16,%r4", range(64), True),
            ("[%r1],[%d1],16,%p2", range(64, 128), True),
            ("[%r1],[%d1],16,4", range(128), False),
            ("[%r1],[%d1],16,%r5", range(128), False),
        ],
    )
    def test_they_read_as_much_as_they_are_told(self, end: str, wanted: range | list[int], sure: bool) -> None:
        """%r4 is 16 for the first half of the threads, %p2 true; %r5 is data."""
        body = f"""{self.SETUP} createpolicy.fractional.L2::evict_last.b64 %d3,1.0; setp.lt.u32 %p2,%i,16;
            selp.u32 %r4,16,0,%p2; ld.global.u32 %r5,[%z];
            cp.async.cg.shared.global{end if end.startswith(".") else " " + (end or "[%r1],[%d1],16")};
            cp.async.wait_all; {OWN_Y}"""
        data = {"z": np.full(1, 16, np.uint32)}
        trace = sound(case(body, x=Room(128), y=out(32), z=Room(1)), data)
        assert read(trace) == set(wanted)
        beyond = case(body, x=Room(4), y=out(32), z=Room(1))
        assert bool(beyond.trace().misses) is (sure and bool(wanted))
