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

    def test_what_two_blocks_write_lane_by_lane(self) -> None:
        """Blocks of 32 threads, each of which writes 40 elements from 32 times its number on."""
        body = """mul.wide.u32 %d3,%cta,128; mul.wide.u32 %d4,%r0,0; mov.u32 %r5,%tid.x; mul.wide.u32 %d4,%r5,4;
            add.u64 %d3,%d3,%d4; add.u64 %d3,%y,%d3; st.global.u32 [%d3],%i; setp.lt.u32 %p1,%r5,8;
            @%p1 st.global.u32 [%d3+128],%i;"""
        trace = sound(case(body, y=out(104), grid=(3,)), exact=True)
        assert written(trace) == set(range(104))
        assert contested(trace) == {*range(32, 40), *range(64, 72)}

    def test_what_is_the_same_from_all(self) -> None:
        body = "st.global.u32 [%y],1; st.global.v2.u32 [%y+8],{1,2};"
        assert contested(sound(case(body, y=out(4), grid=(3,)), exact=True)) == set()
        assert contested(case("st.global.v2.u32 [%y],{1,%i};", y=out(4), grid=(3,)).trace()) == {0, 1}

    def test_what_two_blocks_add_to_is_theirs(self) -> None:
        trace = sound(case("red.global.add.u32 [%y],%i;", y=out(4), grid=(3,)), exact=True)
        assert contested(trace) == set()
        assert written(trace) == read(trace, "y") == {0}
        assert trace.buffers["y"].updates
        assert not trace.buffers["y"].writes

    def test_what_two_launches_write(self) -> None:
        """One after the other, as kernels do that go over something again and again."""
        two = case(OWN_Y, y=out(32), launches=[{}, {}])
        assert contested(sound(two, exact=True)) == set()

    def test_not_what_they_may_write(self) -> None:
        body = "{} ld.global.u32 %r1,[%x]; setp.eq.u32 %p1,%r1,0; @%p1 st.global.u32 [{}],%i;"
        same = "mul.wide.u32 %d3,%r0,%cta; shl.b64 %d3,%d3,2; sub.u64 %d2,%y,%d3; add.u64 %d2,%d2,%d0;"
        for start, at in (("", "%y"), (same, "%d2")):
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
    SETUP = """.shared .align 16 .b8 own[512]; mov.u32 %r1,own; shl.b32 %r2,%i,4; add.u32 %r1,%r1,%r2;
        shl.b64 %d1,%d0,2; add.u64 %d1,%x,%d1;"""

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


class TestMisses:
    def test_the_first_is_named_with_thread_block_and_offset(self) -> None:
        """Three blocks of 8 by 2 threads over 40 elements: the last is the third's, from thread (0, 1, 0) on."""
        body = """mov.u32 %r5,%tid.y; mov.u32 %r6,%ntid.x; mov.u32 %r4,%tid.x; mad.lo.u32 %r5,%r5,%r6,%r4;
            mad.lo.u32 %r5,%cta,16,%r5; mul.wide.u32 %d1,%r5,4; add.u64 %d1,%y,%d1; st.global.u32 [%d1],1;"""
        beyond = case(body, y=out(40), grid=(3,), block=(8, 2))
        trace = sound(beyond)
        (miss,) = misses(trace)
        assert (miss.problem, miss.buffer, miss.launch, miss.writes) == ("bounds", "y", 0, True)
        assert (miss.block, miss.thread) == ((2, 0, 0), (0, 1, 0))
        assert (miss.offset, miss.size, miss.end, miss.threads) == (160, 4, 192, 8)
        assert miss.op.opcode == "st"
        assert written(trace) == set(range(40))
        error = beyond.fault()
        assert error is not None
        assert error.finding.id == "out-of-bounds"
        assert "'y'" in error.finding.message

    def test_each_kind_and_instruction_once(self) -> None:
        body = (
            "ld.global.u32 %r1,[%x+64]; ld.global.u32 %r1,[%x+68]; ld.global.u32 %r1,[%x+-4]; st.global.u32 [%y+64],1;"
        )
        found = misses(sound(case(body, x=Room(16), y=out(16), grid=(2,))))
        assert [(m.problem, m.buffer, m.offset, m.writes) for m in found] == [
            ("bounds", "x", 64, False), ("bounds", "x", 68, False), ("bounds", "x", -4, False),
            ("bounds", "y", 64, True),
        ]  # fmt: skip
        # One address for all: every thread of both blocks.
        assert [m.threads for m in found] == [64] * 4

    def test_half_of_an_access_may_miss(self) -> None:
        body = "ld.global.v4.u32 {%r1,%r2,%r3,%r4},[%x+48];"
        (miss,) = misses(sound(case(body + OWN_Y, x=Room(15), y=out(32))))
        assert (miss.offset, miss.size, miss.end) == (48, 16, 64)
        assert not sound(case(body + OWN_Y, x=Room(16), y=out(32)), exact=True).misses

    @pytest.mark.parametrize("offset", [0, 8, -8])
    def test_null_and_what_is_near_it(self, offset: int) -> None:
        (miss,) = misses(sound(case(f"ld.global.u32 %r1,[%x+{offset}];" + OWN_Y, x=None, y=out(32))))
        assert (miss.problem, miss.buffer, miss.offset) == ("null", None, offset)

    def test_an_address_that_is_far_from_all(self) -> None:
        body = "mov.b64 %d1,0x7fff000000000000; add.u64 %d1,%x,%d1; ld.global.u32 %r1,[%d1];" + OWN_Y
        (miss,) = misses(sound(case(body, x=Room(4), y=out(32))))
        assert (miss.problem, miss.buffer) == ("bounds", None)

    def test_misaligned(self) -> None:
        body = "ld.global.v2.u32 {%r1,%r2},[%x+4];" + OWN_Y
        (miss,) = misses(sound(case(body, x=Room(16), y=out(32))))
        assert (miss.problem, miss.buffer, miss.offset, miss.size) == ("misaligned", "x", 4, 8)

    def test_a_vector_of_bytes_is_aligned_to_its_whole(self) -> None:
        body = "ld.global.v4.u8 {%h1,%h2,%h3,%h4},[%x+2];" + OWN_Y
        (miss,) = misses(sound(case(body, x=Room(16, "u8"), y=out(32))))
        assert (miss.problem, miss.size) == ("misaligned", 4)

    def test_the_last_launch_is_looked_at_too(self) -> None:
        three = case("mul.wide.u32 %d1,%n,4; add.u64 %d1,%y,%d1; st.global.u32 [%d1],1;", y=out(4), n=0,
                     launches=[{"n": 0}, {"n": 2}, {"n": 4}])  # fmt: skip
        trace = sound(three)
        assert [(m.launch, m.offset) for m in misses(trace)] == [(2, 16)]
        assert written(trace) == {0, 2}

    @pytest.mark.parametrize("value", [0, 1])
    def test_what_may_not_happen_misses_nothing(self, value: int) -> None:
        body = "ld.global.u32 %r1,[%x]; setp.eq.u32 %p1,%r1,0; @%p1 st.global.u32 [%y+{}],%i;"
        data = {"x": np.full(1, value, np.uint32)}
        assert not case(body.format(16), x=Room(1), y=out(4)).trace().misses
        assert written(sound(case(body.format(12), x=Room(1), y=out(4)), data)) == {3}


class TestSharedExtents:
    @pytest.mark.parametrize(("static", "dynamic", "at", "wanted"), [
        (64, 0, 60, False), (64, 0, 64, True), (64, 32, 92, False), (64, 32, 96, True), (0, 32, 28, False),
        (0, 32, 32, True), (0, 0, 0, True),
    ])  # fmt: skip
    def test_static_and_dynamic(self, static: int, dynamic: int, at: int, wanted: bool) -> None:
        own = f".shared .align 4 .b8 own[{static}]; st.shared.u8 [own],1;" if static else ""
        one = case(f"{own} mov.u32 %r1,{at}; st.shared.u32 [%r1],1;" + OWN_Y, y=out(32), shared=dynamic)
        assert bool(one.trace().misses) is wanted
        # The device begins dynamic memory at a multiple of 128 bytes.
        assert (one.fault() is not None) is (wanted and not (static and dynamic))

    def test_through_a_generic_address_and_an_atomic(self) -> None:
        body = """.shared .align 4 .b8 own[64]; mov.b64 %d1,own; cvta.shared.u64 %d1,%d1; add.u64 %d1,%d1,%d0;
            {} [%d1],%i;"""
        for access in ("st.u32", "red.add.u32"):
            (miss,) = misses(sound(case(body.format(access) + OWN_Y, y=out(32))))
            assert (miss.problem, miss.offset, miss.thread, miss.threads) == ("shared", 64, (16, 0, 0), 16)


class TestBusy:
    def test_blocks_past_the_end_do_nothing(self) -> None:
        body = "setp.ge.u32 %p1,%i,%n; @%p1 bra L;" + OWN_Y + "L: ret;"
        trace = sound(case(body, y=out(80), n=80, grid=(5,)), exact=True)
        assert trace.busy[0].tolist() == [True, True, True, False, False]

    def test_one_thread_that_may_do_something(self) -> None:
        body = """setp.ne.u32 %p1,%i,40; @%p1 bra L; ld.global.u32 %r3,[%x]; setp.eq.u32 %p2,%r3,0; @%p2 bra L;
            st.global.u32 [%y],1; L: ret;"""
        trace = sound(case(body, x=Room(1), y=out(1), grid=(3,)))
        assert trace.busy[0].tolist() == [False, True, False]

    def test_one_that_writes_somewhere(self) -> None:
        body = """setp.ne.u32 %p1,%cta,1; @%p1 bra L; mov.u32 %r3,%smid; mul.wide.u32 %d1,%r3,0; add.u64 %d1,%y,%d1;
            st.global.u32 [%d1],1; L: ret;"""
        assert sound(case(body, y=out(1), grid=(3,))).busy[0].tolist() == [False, True, False]

    def test_of_each_launch(self) -> None:
        body = "setp.ne.u32 %p1,%cta,%n; @%p1 bra L;" + OWN_Y + "L: ret;"
        trace = sound(case(body, y=out(96), n=0, grid=(3,), launches=[{"n": 0}, {"n": 2}]), exact=True)
        assert [trace.busy[k].tolist() for k in (0, 1)] == [[True, False, False], [False, False, True]]
