"""Walks of small bodies: what is known is exact, what hangs on data is left open, and a CPU device sees the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.footprint.kit import Room, blurred, case, misses, out, read, sound, written

pytestmark = pytest.mark.device

#: A store of %r3 at that index of y.
STORE = "cvt.u64.u32 %d2,%r3; shl.b64 %d2,%d2,2; add.u64 %d2,%y,%d2; st.global.u32 [%d2],%r3;"
#: A load of the thread's own element of x, and a store to that of y.
OWN_X, OWN_Y = "add.u64 %d1,%x,%d0;", "add.u64 %d2,%y,%d0; st.global.u32 [%d2],%i;"
ODD = "and.b32 %r2,%i,1; setp.eq.u32 %p1,%r2,1;"
ZEROS, ONES = np.zeros(64, np.uint32), np.ones(64, np.uint32)


class TestGuards:
    def test_each_lane_by_its_own(self) -> None:
        body = f"{ODD} {OWN_X} @%p1 ld.global.u32 %r3,[%d1]; @!%p1 st.global.u32 [%d1+128],1;"
        trace = sound(case(body, x=Room(64)), exact=True)
        assert read(trace) == set(range(1, 32, 2))
        assert written(trace, "x") == set(range(32, 64, 2))

    def test_a_guarded_result_keeps_what_was_there(self) -> None:
        trace = sound(case(f"{ODD} mov.u32 %r3,7; @%p1 mov.u32 %r3,9; {STORE}", y=out(16)), exact=True)
        assert written(trace) == {7, 9}

    @pytest.mark.parametrize("value", [0, 1])
    def test_one_that_is_not_known_covers_what_it_may(self, value: int) -> None:
        body = f"ld.global.u32 %r1,[%x]; setp.eq.u32 %p1,%r1,0; @%p1 st.global.u32 [%y+8],%i; mov.u32 %r3,5;{STORE}"
        trace = sound(case(body, x=Room(1), y=out(8)), {"x": np.full(1, value, np.uint32)})
        assert written(trace) == {2, 5}
        assert blurred(trace) == (set(), set())

    @pytest.mark.parametrize("value", [0, 1])
    def test_a_result_under_one_that_is_not_known(self, value: int) -> None:
        body = f"ld.global.u32 %r1,[%x]; setp.eq.u32 %p1,%r1,0; mov.u32 %r3,5; @%p1 mov.u32 %r3,6; {STORE}"
        trace = sound(case(body, x=Room(1), y=out(8)), {"x": np.full(1, value, np.uint32)})
        assert (written(trace), blurred(trace)) == (set(), (set(), {"y"}))

    @pytest.mark.parametrize("value", [0, 1])
    @pytest.mark.parametrize(
        ("logic", "known"),
        [
            ("and.pred %p3,%p1,%p2;", True), ("or.pred %p3,%p1,%p2;", False), ("xor.pred %p3,%p1,%p2;", False),
            ("not.pred %p4,%p2; or.pred %p3,%p1,%p4;", True), ("setp.ge.and.u32 %p3,%r1,0,%p2;", True),
            ("setp.ge.or.u32 %p3,%r1,1,!%p2;", True), ("setp.ge.or.u32 %p3,%r1,1,%p2;", False),
            ("setp.ge.xor.u32 %p3,%r1,1,%p2;", False), ("setp.lt.and.u32 %p4|%p3,%r1,1,%p2;", True),
            ("selp.u32 %r4,8,8,%p1; setp.eq.u32 %p3,%r4,8;", True),
            ("selp.u32 %r4,8,9,%p1; setp.eq.u32 %p3,%r4,8;", False),
            ("selp.u32 %r4,%r1,9,%p2; setp.eq.u32 %p3,%r4,9;", True),
        ],
    )  # fmt: skip
    def test_what_is_decided_by_what_is_known(self, logic: str, known: bool, value: int) -> None:
        """%p1 hangs on data, %p2 is false: ``and`` is decided by it, ``or`` is not."""
        body = f"""ld.global.u32 %r1,[%x]; setp.eq.u32 %p1,%r1,0; setp.gt.u32 %p2,%i,999; {logic}
            mov.u32 %r3,2; @%p3 mov.u32 %r3,3; {STORE}"""
        trace = sound(case(body, x=Room(1), y=out(8)), {"x": np.full(1, value, np.uint32)})
        assert (len(written(trace)), "y" in blurred(trace)[1]) == ((1, False) if known else (0, True))

    def test_some_bytes_of_a_register(self) -> None:
        """A video instruction writes them; the register is not what it was."""
        trace = sound(
            case(f"mov.u32 %r3,5; vset4.u32.s32.eq %r3.b310,%r0,%r0,%r3; and.b32 %r3,%r3,15; {STORE}", y=out(16))
        )
        assert (written(trace), blurred(trace)) == (set(), (set(), {"y"}))


class TestWays:
    def test_loops_of_as_many_turns_as_each_lane_wants(self) -> None:
        body = f"""mov.u32 %r4,0; {OWN_X} L: setp.ge.u32 %p1,%r4,%i; @%p1 bra E; mad.lo.u32 %r3,%r4,8,%i; {STORE}
            add.u32 %r4,%r4,1; bra L; E: st.global.u32 [%d1],%r4;"""
        trace = sound(case(body, x=Room(8), y=out(80), block=(8,)), exact=True)
        assert written(trace) == {8 * turn + lane for lane in range(8) for turn in range(lane)}
        assert written(trace, "x") == set(range(8))

    @pytest.mark.parametrize("turns", [1, 3])
    def test_a_loop_whose_turns_are_data(self, turns: int) -> None:
        """What it writes is left open, and so is what it counts; what comes after is not."""
        body = f"""ld.global.u32 %r1,[%x]; mov.u32 %r3,0; L: {STORE} add.u32 %r3,%r3,1; setp.lt.u32 %p1,%r3,%r1;
            @%p1 bra L; st.global.u32 [%z],1; cvt.u64.u32 %d4,%r3; shl.b64 %d4,%d4,2; add.u64 %d4,%w,%d4;
            ld.global.u32 %r5,[%d4];"""
        rooms: dict[str, Any] = {"x": Room(1), "y": out(8), "z": Room(1), "w": Room(8)}
        trace = sound(case(body, **rooms), {"x": np.full(1, turns, np.uint32)})
        assert written(trace) == {0}
        assert written(trace, "z") == {0}
        assert blurred(trace) == ({"w"}, {"y"})

    def test_early_exits(self) -> None:
        body = f"setp.ge.u32 %p1,%i,%n; @%p1 {{}}; {OWN_Y} {ODD} @%p1 {{}}; st.global.u32 [%d2+128],1;"
        for end in ("exit", "ret"):
            trace = sound(case(body.format(end, end), y=out(64), n=20), exact=True)
            assert written(trace) == {*range(20), *range(32, 52, 2)}

    @pytest.mark.parametrize("value", [0, 1])
    def test_after_an_exit_that_may_happen_nothing_is_sure(self, value: int) -> None:
        body = "ld.global.u32 %r1,[%x]; setp.eq.u32 %p1,%r1,0; @%p1 exit; st.global.u32 [%y+400],1;"
        one = case(body, x=Room(1), y=out(4))
        assert not one.trace().misses
        assert blurred(one.trace()) == (set(), {"y"})
        assert (one.fault({"x": np.full(1, value, np.uint32)}) is None) is (value == 0)

    @pytest.mark.parametrize("value", [0, 1])
    def test_what_lies_between_may_have_happened_or_not(self, value: int) -> None:
        body = f"""ld.global.u32 %r1,[%x]; setp.eq.u32 %p1,%r1,0; mov.u32 %r3,1; mov.u32 %r4,2; @%p1 bra A;
            mov.u32 %r3,5; ld.global.u32 %r5,[%z]; bra M; A: red.global.add.u32 [%w],1; M: {STORE}
            mov.u32 %r3,%r4; {STORE}"""
        rooms: dict[str, Any] = {"x": Room(1), "y": out(8), "z": Room(1), "w": Room(1), "other": Room(1)}
        trace = sound(case(body, **rooms), {"x": np.full(1, value, np.uint32)})
        assert written(trace) == {2}
        assert blurred(trace) == ({"z", "w"}, {"w", "y"})

    def test_switches(self) -> None:
        body = f"""and.b32 %r1,%i,3; brx.idx %r1,T; T: .branchtargets A,B,A,C; A: mov.u32 %r3,10; bra M;
            B: mov.u32 %r3,11; C: add.u32 %r3,%i,32; M: {STORE}"""
        trace = sound(case(body, y=out(64)), exact=True)
        assert written(trace) == {10, *range(33, 64, 2)}

    @pytest.mark.parametrize("value", [0, 1, 2])
    def test_a_switch_over_data(self, value: int) -> None:
        body = f"""ld.global.u32 %r1,[%x]; mov.u32 %r4,4; brx.idx %r1,T; T: .branchtargets A,B,C;
            A: mov.u32 %r3,1; bra M; B: mov.u32 %r3,2; bra M; C: mov.u32 %r3,3; M: {STORE} mov.u32 %r3,%r4; {STORE}"""
        trace = sound(case(body, x=Room(1), y=out(8)), {"x": np.full(1, value, np.uint32)})
        assert (written(trace), blurred(trace)) == ({4}, (set(), {"y"}))

    def test_a_trap_that_may_happen_ends_nothing_else(self) -> None:
        body = f"ld.global.u32 %r1,[%x]; setp.eq.u32 %p1,%r1,0; @%p1 bra T; bra M; T: trap; M: {OWN_Y}"
        trace = sound(case(body, x=Room(1), y=out(32)), {"x": ONES[:1]})
        assert (written(trace), blurred(trace)) == (set(range(32)), (set(), set()))

    def test_an_empty_body(self) -> None:
        trace = sound(case("", x=Room(4), prelude=False), exact=True)
        assert trace.complete
        assert (read(trace), trace.busy[0].tolist()) == (set(), [False])

    def test_no_blocks_at_all(self) -> None:
        trace = case(OWN_Y, y=out(4), grid=(0,)).trace()
        assert (trace.complete, written(trace), trace.busy[0].tolist()) == (True, set(), [])


class TestUnknownWays:
    @pytest.mark.parametrize("value", [0, 1])
    def test_a_register_that_some_lanes_first_write_after_others_passed_over(self, value: int) -> None:
        """Even lanes know their way; what odd ones leave in %r3, which nobody has written before, is not known."""
        trace = sound(
            case(
                f"{OWN_X} mov.u32 %r1,1; {ODD} @%p1 ld.global.u32 %r1,[%d1]; setp.ne.u32 %p2,%r1,0; @%p2 bra A;"
                "mov.u32 %r3,40; bra M; A: mov.u32 %r3,0; M: add.u32 %r3,%r3,%i;" + STORE,
                x=Room(32), y=out(80),
            ),
            {"x": np.full(32, value, np.uint32)},
        )  # fmt: skip
        assert written(trace) == set(range(0, 32, 2))
        assert blurred(trace)[1] == {"y"}

    @pytest.mark.parametrize("value", [0, 1])
    def test_what_one_way_stores_for_the_caller(self, value: int) -> None:
        head = """.func (.param .b32 v) f(.param .b64 p)
            { .reg .b64 %q; .reg .pred %p; .reg .b32 %x; ld.param.b64 %q,[p]; ld.global.b32 %x,[%q];
            setp.ne.u32 %p,%x,0; st.param.b32 [v],0; @%p bra L; st.param.b32 [v],4; L: ret; }"""
        call = ".param .b64 a; .param .b32 v; st.param.b64 [a],%x; call (v),f,(a); ld.param.b32 %r3,[v];"
        trace = sound(case(call + STORE, head=head, x=Room(1), y=out(80)), {"x": np.full(1, value, np.uint32)})
        assert not written(trace)
        assert blurred(trace) == (set(), {"y"})


class TestCalls:
    def test_a_result_that_is_not_known_is_not_that_of_the_call_before(self) -> None:
        head = """.func (.param .b32 v) three() { st.param.b32 [v],3; ret; }
            .func (.param .b32 v) five(.param .b64 p) { .reg .b64 %q,%f; .reg .b32 %x; mov.u64 %f,three;
            ld.param.b64 %q,[p]; ld.global.b32 %x,[%q]; st.param.b32 [v],%x; .param .b32 w; call (w),%f,(),P; ret;
            P: .callprototype (.param .b32 _) _ (); }"""
        body = ".param .b64 a; .param .b32 v; st.param.b64 [a],%x; call (v),three; call (v),five,(a);"
        trace = sound(
            case(body + "ld.param.b32 %r3,[v];" + STORE, head=head, x=Room(1), y=out(80)),
            {"x": np.full(1, 5, np.uint32)},
        )
        assert not written(trace)
        assert "y" in blurred(trace)[1]

    def test_threads_that_end_in_a_function_do_not_come_back(self) -> None:
        head = """.func leave(.param .b32 n) { .reg .pred %p; .reg .b32 %x; ld.param.b32 %x,[n]; setp.gt.u32 %p,%x,7;
            @%p exit; ret; }"""
        body = ".param .b32 a; st.param.b32 [a],%i; call leave,(a);"
        trace = sound(case(body + OWN_Y, head=head, y=out(32)), exact=True)
        assert written(trace) == set(range(8))

    @pytest.mark.parametrize("value", [0, 1])
    def test_threads_that_may_have_ended_in_a_function_miss_nothing_for_certain(self, value: int) -> None:
        head = """.func leave(.param .b64 p) { .reg .pred %p; .reg .b64 %q; .reg .b32 %x; ld.param.b64 %q,[p];
            ld.global.b32 %x,[%q]; setp.eq.u32 %p,%x,0; @%p exit; ret; }"""
        body = """.param .b64 a; st.param.b64 [a],%x; call leave,(a); add.u64 %d2,%y,%d0; st.global.u32 [%d2],1;
            setp.ge.u32 %p1,%i,16; @%p1 bra L; st.global.u32 [%d2+64],1; bra L; L: ret;"""
        trace = sound(case(body, head=head, x=Room(1), y=out(32)), {"x": np.full(1, value, np.uint32)})
        assert written(trace) == set(range(32))
        beyond = case(body, head=head, x=Room(1), y=out(16))
        assert beyond.fault({"x": ZEROS[:1]}) is None
        assert not sound(beyond, {"x": ZEROS[:1]}).misses

    def test_each_call_of_a_function_has_local_memory_of_its_own(self) -> None:
        head = """.func (.param .b32 v) r(.param .b32 n)
            { .local .align 4 .b8 own[4]; .reg .pred %p; .reg .b64 %q; .reg .b32 %x,%y; ld.param.b32 %x,[n];
            mov.b64 %q,own; st.local.b32 [%q],%x; setp.eq.u32 %p,%x,0; @%p bra L; sub.u32 %y,%x,1;
            { .param .b32 a; .param .b32 b; st.param.b32 [a],%y; call (b),r,(a); ld.param.b32 %y,[b]; }
            L: ld.local.b32 %x,[%q]; st.param.b32 [v],%x; ret; }"""
        body = ".param .b32 a; .param .b32 v; st.param.b32 [a],3; call (v),r,(a); ld.param.b32 %r3,[v];"
        assert written(sound(case(body + STORE, head=head, y=out(80)), exact=True)) == {3}

    IDENTITY = ".func (.reg .b32 v) id(.reg .b32 n, .reg .b64 p) { st.global.u32 [p],n; add.u32 v,n,1; ret; }"
    LOAD = """.func (.param .b64 v) at(.param .align 8 .b8 s[16]) { .reg .b64 %a,%b; ld.param.b64 %a,[s];
        ld.param.b64 %b,[s+8]; add.u64 %a,%a,%b; st.param.b64 [v],%a; ret; }"""

    def test_registers_and_structs_as_parameters(self) -> None:
        body = f"call (%r3),id,(%i,%x); {STORE}"
        trace = sound(case(body, head=self.IDENTITY, x=Room(1), y=out(40)), exact=True)
        assert (written(trace, "x"), written(trace)) == ({0}, set(range(1, 33)))
        body = """.param .align 8 .b8 s[16]; .param .b64 v; st.param.b64 [s],%y; st.param.b64 [s+8],%d0;
            call (v),at,(s); ld.param.b64 %d3,[v]; st.global.u32 [%d3],1;"""
        assert written(sound(case(body, head=self.LOAD, y=out(32)), exact=True)) == set(range(32))

    def test_each_lane_in_the_branch_of_its_own(self) -> None:
        """Odd lanes call, the others do not."""
        body = f"mov.u32 %r3,0; {ODD} @!%p1 bra M; call (%r3),id,(%i,%x); M: {STORE}"
        trace = sound(case(body, head=self.IDENTITY, x=Room(1), y=out(40)), exact=True)
        assert written(trace) == {0, *range(2, 33, 2)}

    @pytest.mark.parametrize("value", [0, 1])
    def test_one_that_may_happen_may_touch_everything(self, value: int) -> None:
        body = f"""ld.global.u32 %r1,[%x]; setp.eq.u32 %p1,%r1,0; mov.u32 %r3,3; @%p1 bra M; call (%r3),id,(%i,%z);
            M: {STORE} mov.u32 %r3,35; {STORE}"""
        trace = sound(
            case(body, head=self.IDENTITY, x=Room(1), y=out(40), z=Room(1)), {"x": np.full(1, value, np.uint32)}
        )
        assert written(trace) == {35}
        assert blurred(trace) == ({"x", "y", "z"}, {"x", "y", "z"})

    @pytest.mark.parametrize("value", [0, 1])
    def test_one_under_a_guard_that_is_not_known(self, value: int) -> None:
        body = f"ld.global.u32 %r1,[%x]; setp.eq.u32 %p1,%r1,0; mov.u32 %r3,3; @%p1 call (%r3),id,(%i,%z); {STORE}"
        rooms: dict[str, Any] = {"x": Room(1), "y": out(40), "z": Room(1)}
        trace = sound(case(body, head=self.IDENTITY, **rooms), {"x": np.full(1, value, np.uint32)})
        assert (written(trace), blurred(trace)[1]) == (set(), {"x", "y", "z"})

    def test_one_through_a_register_may_store_where_a_pointer_leads(self) -> None:
        head = ".func set(.param .b64 p) { .reg .b64 %q; ld.param.b64 %q,[p]; st.u32 [%q],5; ret; }"
        body = f""".local .align 4 .b8 own[4]; .param .b64 a; mov.b64 %d1,own;
            st.local.u32 [%d1],3; cvta.local.u64 %d3,%d1; st.param.b64 [a],%d3; mov.u64 %d4,set; call %d4,(a),P;
            ld.local.u32 %r3,[%d1]; {STORE} ret;
            P: .callprototype _ (.param .b64 _);"""
        trace = sound(case(body, head=head, y=out(8)))
        assert (written(trace), blurred(trace)[1]) == (set(), {"y"})

    def test_how_deep_calls_are_followed(self) -> None:
        head = """.func down(.reg .b32 n, .reg .b64 p) { .reg .pred %p; .reg .b32 %m; .reg .b64 %q; st.global.u32 [p],n;
            setp.eq.u32 %p,n,0; @%p ret; sub.u32 %m,n,1; add.u64 %q,p,4; call down,(%m,%q); ret; }"""
        shallow = sound(case("call down,(%n,%y);", head=head, y=out(16), n=5), exact=True)
        assert written(shallow) == set(range(6))
        deep = sound(case("call down,(%n,%y);", head=head, y=out(16), n=12))
        assert written(deep) < set(range(13))
        assert blurred(deep)[1] == {"y"}

    def test_one_without_a_body(self) -> None:
        head = ".extern .func (.param .b32 v) vprintf(.param .b64 f, .param .b64 a);"
        body = """.param .b64 f; .param .b64 a; .param .b32 v; st.param.b64 [f],0; st.param.b64 [a],0;
            call (v),vprintf,(f,a); ld.param.b32 %r3,[v];""" + STORE  # fmt: skip
        trace = case(body, head=head, y=out(4)).trace()
        assert (written(trace), blurred(trace)) == (set(), ({"y"}, {"y"}))


class TestLocalMemory:
    @pytest.mark.parametrize("value", [0, 1])
    def test_a_store_that_may_happen_elsewhere(self, value: int) -> None:
        """The first half stores at 0, and it is not known whether the others store at 4."""
        body = f""".local .align 4 .b8 own[16]; mov.b64 %d1,own; st.local.u32 [%d1],1; st.local.u32 [%d1+4],2;
            setp.lt.u32 %p2,%i,16; mov.pred %p1,%p2; add.u64 %d3,%x,%d0; @!%p2 ld.global.u32 %r1,[%d3];
            @!%p2 setp.eq.u32 %p1,%r1,0; selp.b64 %d2,0,4,%p2; add.u64 %d2,%d1,%d2; @%p1 st.local.u32 [%d2],7;
            ld.local.u32 %r3,[%d1+4]; {STORE}"""
        trace = sound(case(body, x=Room(32), y=out(64)), {"x": np.full(32, value, np.uint32)})
        assert "y" in blurred(trace)[1]


class TestAddresses:
    def test_spaces_of_addresses(self) -> None:
        """In %r3 a bit for each space that it is in: of a buffer, a variable, shared and local memory, a constant."""
        ask = "".join(
            f"isspacep.{space} %p1,%d1; selp.u32 %r4,{bit},0,%p1; or.b32 %r3,%r3,%r4;"
            for bit, space in ((1, "global"), (2, "shared"), (4, "local"), (8, "const"))
        )
        head = ".global .align 4 .u32 g; .const .align 4 .u32 c;"
        own = ".shared .align 4 .b8 s[4]; .local .align 4 .b8 l[4];"
        where = {
            "mov.b64 %d1,%x;": 1,
            "mov.b64 %d1,g;": None,
            "mov.b64 %d1,s; cvta.shared.u64 %d1,%d1;": 2,
            "mov.b64 %d1,l; cvta.local.u64 %d1,%d1;": 4,
            "mov.b64 %d1,c; cvta.const.u64 %d1,%d1;": None,
        }
        for made, bits in where.items():
            trace = sound(case(f"{own} {made} mov.u32 %r3,0; {ask} {STORE}", head=head, x=Room(1), y=out(16)))
            assert written(trace) == (set() if bits is None else {bits}), made
            assert ("y" in blurred(trace)[1]) is (bits is None)

    @pytest.mark.parametrize("value", [0, 1])
    @pytest.mark.parametrize("store", ["@%p1 bra M; st.local.u32 [%d1],5; M:", "@!%p1 st.local.u32 [%d1],5;"])
    def test_a_store_that_may_happen(self, store: str, value: int) -> None:
        body = f""".local .align 4 .b8 own[4]; mov.b64 %d1,own; st.local.u32 [%d1],3; ld.global.u32 %r1,[%x];
            setp.eq.u32 %p1,%r1,0; {store} ld.local.u32 %r3,[%d1]; {STORE}"""
        trace = sound(case(body, x=Room(1), y=out(8)), {"x": np.full(1, value, np.uint32)})
        assert (written(trace), blurred(trace)) == (set(), (set(), {"y"}))

    @pytest.mark.parametrize("value", [0, 1])
    def test_a_load_from_one_of_two_places(self, value: int) -> None:
        body = f""".local .align 4 .b8 own[8]; mov.b64 %d1,own; st.local.u32 [%d1],3; st.local.u32 [%d1+4],5;
            ld.global.u32 %r1,[%x]; setp.eq.u32 %p1,%r1,0; @%p1 add.u64 %d1,%d1,4; ld.local.u32 %r3,[%d1]; {STORE}"""
        trace = sound(case(body, x=Room(1), y=out(8)), {"x": np.full(1, value, np.uint32)})
        assert (written(trace), blurred(trace)) == (set(), (set(), {"y"}))

    def test_to_generic_addresses_and_back(self) -> None:
        body = f""".local .align 4 .b8 own[4]; mov.b64 %d1,own; mov.u32 %r3,3; cvta.local.u64 %d3,%d1; st.u32 [%d3],%r3;
            cvta.to.local.u64 %d4,%d3; mov.u32 %r3,0; ld.local.u32 %r3,[%d4]; {STORE}"""
        assert written(sound(case(body, y=out(8)), exact=True)) == {3}

    def test_what_is_spilled_comes_back(self) -> None:
        body = f""".local .align 16 .b8 own[32]; mov.b64 %d1,own; cvta.local.u64 %d3,%d1;
            st.local.v2.u32 [%d1+8],{{%i,%r0}}; st.u32 [%d3+4],%i; add.u32 %r4,%i,1; {ODD}
            @%p1 st.local.u32 [%d1+8],%r4; ld.local.u32 %r3,[%d1+8]; {STORE}
            ld.u32 %r3,[%d3+4]; add.u32 %r3,%r3,40; {STORE} ld.local.u32 %r3,[%d1+12]; add.u32 %r3,%r3,80; {STORE}"""
        trace = sound(case(body, y=out(128)), exact=True)
        assert written(trace) == {*(k + k % 2 for k in range(32)), *range(40, 72), 112}

    def test_what_other_pieces_or_places_have_overwritten_does_not(self) -> None:
        for store in ("st.local.u16 [%d1+2],0;", "st.local.u64 [%d1],%d0;", "st.u32 [%d4],0;", "st.local.u32 [%d5],0;"):
            body = f""".local .align 8 .b8 own[192]; mov.b64 %d1,own; cvta.local.u64 %d4,%d1; add.u64 %d5,%d1,%d0;
                ld.global.u32 %r1,[%x]; cvt.u64.u32 %d6,%r1; add.u64 %d4,%d4,%d6; mov.u32 %r3,3;
                st.local.u32 [%d1],%r3; {store} ld.local.u32 %r3,[%d1]; and.b32 %r3,%r3,63; {STORE}"""
            trace = sound(case(body, x=Room(1), y=out(64)), {"x": np.zeros(1, np.uint32)})
            assert not written(trace), store
            assert "y" in blurred(trace)[1], store


class TestAccesses:
    @pytest.mark.parametrize("space", ["", ".shared::cta"])
    def test_a_bulk_store_to_shared_memory_leaves_buffers_alone(self, space: str) -> None:
        """Its extent is an operand, and it has no type."""
        body = f".shared .align 16 .b8 own[64]; mov.u64 %d4,own; cvta.shared.u64 %d5,%d4; {OWN_Y}"
        store = f"st.bulk.weak{space} [{'%d4' if space else '%d5'}],64,0;"
        trace = case(f"{body} {store}", y=out(32)).trace()
        assert trace.complete
        assert misses(trace) == []
        assert set(range(32)) <= written(trace)

    def test_vectors_and_elements_of_other_sizes(self) -> None:
        body = """ld.global.v4.u32 {%r1,%r2,%r3,%r4},[%x+16]; ld.global.u16 %h1,[%b+6]; st.global.v2.u64 [%y],{%d0,%d0};
            ld.global.u64 %d1,[%b+8]; st.global.u8 [%w+9],%h1; ld.global.v2.u32 {_,%r5},[%x+40];"""
        rooms: dict[str, Any] = {"x": Room(16), "b": Room(16, "u8"), "y": out(8, "u16"), "w": Room(2, "f64")}
        trace = sound(case(body, **rooms), exact=True)
        assert read(trace) == {4, 5, 6, 7, 10, 11}
        assert read(trace, "b") == {6, 7, *range(8, 16)}
        assert written(trace) == set(range(8))
        assert written(trace, "w") == {1}

    def test_atomics_read_and_write(self) -> None:
        body = """add.u64 %d1,%x,%d0; atom.global.add.u32 %r1,[%d1],1; red.global.add.f32 [%y+4],%f1;
            atom.cas.b64 %d3,[%y+8],%d0,%d0; atom.global.exch.b32 %r3,[%z],%r1;"""
        trace = sound(case(body, x=Room(32), y=out(8), z=Room(2)), exact=True)
        for name, places in (("x", set(range(32))), ("y", {1, 2, 3}), ("z", {0})):
            assert (read(trace, name), written(trace, name)) == (places, places)
            assert (trace.buffers[name].updates, trace.buffers[name].writes) == (True, False)

    def test_what_an_atomic_gives_is_data(self) -> None:
        trace = sound(case("atom.global.add.u32 %r3,[%x],1;" + STORE, x=Room(1), y=out(64)), {"x": ZEROS[:1]})
        assert (written(trace), blurred(trace)) == (set(), (set(), {"y"}))

    @pytest.mark.parametrize(
        ("copy", "reads", "writes"),
        [
            ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1],[%x],64,[%r1];", {"x"}, set()),
            ("cp.async.bulk.global.shared::cta.bulk_group [%y],[%r1],64;", set(), {"y"}),
            ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%y],[%r1],64;", {"y"}, {"y"}),
            ("cp.async.bulk.prefetch.L2.global [%x],64;", set(), set()),
            ("prefetch.global.L2 [%x];", set(), set()),
            ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1,%r2,%r3,%r4},[%r9];", set(), set()),
        ],
    )  # fmt: skip
    def test_what_moves_an_extent_that_is_not_looked_at(self, copy: str, reads: set[str], writes: set[str]) -> None:
        trace = case(copy, x=Room(32), y=out(32)).trace()
        assert blurred(trace) == (reads, writes)
        assert (read(trace), written(trace), misses(trace)) == (set(), set(), [])

    def test_members_of_a_struct(self) -> None:
        body = """ld.param.u64 %d1,[s]; ld.param.u32 %r3,[s+8]; ld.param.v2.u64 {%d3,%d4},[s+16]; add.u64 %d1,%d1,%d0;
            ld.global.u32 %r5,[%d1]; mul.wide.u32 %d5,%r3,4; add.u64 %d3,%d3,%d5; st.global.u32 [%d3],1;
            mov.b64 %d6,s; cvta.param.u64 %d6,%d6; ld.u64 %d7,[%d6+24]; st.global.u32 [%d7+8],1;"""
        trace = sound(case(body, s={0: Room(32), 8: 5, 16: out(8), 24: Room(4)}), exact=True)
        assert read(trace, "s0") == set(range(32))
        assert (written(trace, "s16"), written(trace, "s24")) == ({5}, {2})

    def test_an_index_that_is_loaded_blurs_the_buffer_it_is_added_to(self) -> None:
        body = """ld.global.u32 %r1,[%x]; mul.wide.u32 %d1,%r1,4; add.u64 %d1,%z,%d1; ld.global.u32 %r2,[%d1];
            add.u64 %d2,%y,%d0; st.global.u32 [%d2],%r2;"""
        trace = sound(case(body, x=Room(1), z=Room(4), y=out(32)), {"x": np.full(1, 3, np.uint32)})
        assert (read(trace), read(trace, "z"), written(trace)) == ({0}, set(), set(range(32)))
        assert blurred(trace) == ({"z"}, set())

    def test_a_pointer_that_is_loaded_blurs_all(self) -> None:
        body = "ld.global.u64 %d1,[%x]; st.global.u32 [%d1],1;"
        assert blurred(case(body, x=Room(2), y=out(4)).trace()) == (set(), {"x", "y"})

    def test_what_comes_through_shared_memory_is_data(self) -> None:
        body = """.shared .align 4 .b8 own[128]; mov.u32 %r1,own; shl.b32 %r4,%i,2; add.u32 %r1,%r1,%r4;
            st.shared.u32 [%r1],%i; bar.sync 0; ld.shared.u32 %r3,[%r1];""" + STORE  # fmt: skip
        trace = sound(case(body, y=out(32)))
        assert (written(trace), blurred(trace)) == (set(), (set(), {"y"}))

    def test_null_is_a_pointer_that_a_kernel_may_ask_for(self) -> None:
        body = f"setp.eq.u64 %p1,%x,0; @%p1 bra M; ld.global.u32 %r1,[%x]; M: {OWN_Y}"
        assert not sound(case(body, x=None, y=out(32)), exact=True).misses
        assert read(sound(case(body, x=Room(1), y=out(32)), exact=True)) == {0}

    def test_generic_addresses(self) -> None:
        """Odd lanes write to the buffer, the others to shared memory."""
        body = f""".shared .align 4 .b8 own[128]; mov.b64 %d3,own; cvta.shared.u64 %d3,%d3; add.u64 %d3,%d3,%d0; {ODD}
            add.u64 %d2,%y,%d0; @!%p1 mov.b64 %d2,%d3; st.u32 [%d2],%i; cvta.to.global.u64 %d4,%x;
            cvta.global.u64 %d4,%d4; ld.u32 %r5,[%d4+4];"""
        trace = sound(case(body, x=Room(2), y=out(32)), exact=True)
        assert (written(trace), read(trace)) == (set(range(1, 32, 2)), {1})


class TestLaunches:
    def test_grids_and_blocks_of_three_dimensions(self) -> None:
        places = ("%tid", "%ntid", "%ctaid", "%nctaid")
        moves = "".join(
            f"mov.u32 %r{1 + 4 * axis + k},{name}.{'xyz'[axis]};" for axis in range(3) for k, name in enumerate(places)
        )
        # ((ctaid * ntid + tid) of z, then y, then x), each times the extent of those below.
        body = f"""{moves} mad.lo.u32 %r13,%r11,%r10,%r9; mul.lo.u32 %r14,%r6,%r8; mul.lo.u32 %r15,%r2,%r4;
            mad.lo.u32 %r16,%r7,%r6,%r5; mad.lo.u32 %r13,%r13,%r14,%r16; mad.lo.u32 %r16,%r3,%r2,%r1;
            mad.lo.u32 %r3,%r13,%r15,%r16; {STORE}"""
        trace = sound(case(body, y=out(2 * 3 * 4 * 3 * 2 * 2), grid=(3, 2, 2), block=(2, 3, 4)), exact=True)
        assert written(trace) == set(range(288))

    def test_lanes_and_warps(self) -> None:
        body = f"mov.u32 %r3,%laneid; mov.u32 %r4,%warpid; mov.u32 %r5,%nwarpid; mad.lo.u32 %r3,%r4,32,%r3; {STORE}"
        assert written(case(body, y=out(80), block=(80,)).trace()) == set(range(80))

    def test_without_a_cluster_each_block_is_its_own(self) -> None:
        body = f"""mov.u32 %r3,%clusterid.x; mov.u32 %r4,%nclusterid.x; mov.u32 %r5,%cluster_ctarank;
            mov.u32 %r6,%cluster_nctarank; mad.lo.u32 %r3,%r4,%r3,%r5; add.u32 %r3,%r3,%r6; {STORE}"""
        assert written(sound(case(body, y=out(16), grid=(3,)), exact=True)) == {1, 4, 7}

    def test_in_a_cluster_the_place_of_a_block_is_left_open(self) -> None:
        body = f"mov.u32 %r3,%cluster_ctarank; {STORE} mov.u32 %r3,%ctaid.x; add.u32 %r3,%r3,8; {STORE}"
        trace = sound(case(body, y=out(16), grid=(4,), cluster=(2, 1, 1)))
        assert (written(trace), blurred(trace)) == ({8, 9, 10, 11}, (set(), {"y"}))

    def test_several(self) -> None:
        body = f"add.u32 %r3,%i,%n; {STORE}"
        trace = sound(case(body, y=out(96), n=0, launches=[{"n": 0}, {"n": 32}, {"n": 64}]), exact=True)
        assert written(trace) == set(range(96))

    def test_more_threads_than_are_walked_at_once(self) -> None:
        trace = case(f"mov.u32 %r3,%i; {STORE}", y=out(100_000), block=(256,), grid=(400,)).trace()
        assert len(written(trace)) == 100_000
        (miss,) = misses(trace)
        assert (miss.block, miss.thread, miss.offset) == ((399, 0, 0), (0, 0, 0), 4 * 256 * 399)

    def test_a_budget_that_is_spent(self) -> None:
        """It is said to be incomplete; the corners of the last launch were looked at."""
        body = f"add.u32 %r3,%i,%n; {STORE}"
        many = case(body, y=out(10_000_000), n=0, block=(256,), grid=(40_000,), launches=[{"n": 0}, {"n": 1}])
        trace = many.trace(2_000_000)
        assert not trace.complete
        assert {0, 256 * 40_000 - 1} & written(trace) == {0}
        assert misses(trace)
        assert case(body, y=out(32), n=0).trace(2_000_000).complete

    def test_a_loop_that_does_not_end_spends_it(self) -> None:
        assert not case("L: bra L;", y=out(4)).trace(10**6).complete
