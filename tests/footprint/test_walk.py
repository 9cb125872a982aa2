"""Walks of small bodies: what is known is exact, what hangs on data is left open, and a CPU device sees the same."""

from __future__ import annotations

import numpy as np
import pytest

from tests.footprint.kit import Room, blurred, case, out, sound, written

pytestmark = pytest.mark.device

#: A store of %r3 at that index of y.
STORE = "cvt.u64.u32 %d2,%r3; shl.b64 %d2,%d2,2; add.u64 %d2,%y,%d2; st.global.u32 [%d2],%r3;"
#: A load of the thread's own element of x, and a store to that of y.
OWN_X, OWN_Y = "add.u64 %d1,%x,%d0;", "add.u64 %d2,%y,%d0; st.global.u32 [%d2],%i;"
ODD = "and.b32 %r2,%i,1; setp.eq.u32 %p1,%r2,1;"
ZEROS, ONES = np.zeros(64, np.uint32), np.ones(64, np.uint32)


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
