from __future__ import annotations

import pytest

from teenycli.ptx.usage import Part, usage_of
from tests.ptx.text import code

pytestmark = pytest.mark.unit


def parts(body: str, params: str) -> dict[tuple[int, int], Part]:
    found = [part for usage in usage_of(code(body, params)) for part in usage.parts]
    return {(part.param, part.offset): part for part in found}


def roles(body: str, params: str = ".param .u32 n") -> Part:
    return parts(f"ld.param.u32 %r1,[n]; {body}", params)[0, 0]


def test_a_bound_is_what_is_compared_after_arithmetic_with_constants_too() -> None:
    assert roles("setp.ge.s32 %p1,%r2,%r1; @%p1 bra done; done:").bound
    assert roles("add.s32 %r3,%r1,-1; setp.ge.s32 %p1,%r2,%r3; @%p1 bra done; done:").bound
    assert not roles("add.s32 %r3,%r1,%r4; setp.ge.s32 %p1,%r2,%r3;").bound


def test_a_loop_goes_on_by_a_branch_backwards() -> None:
    assert roles("top: add.s32 %r2,%r2,1; setp.lt.s32 %p1,%r2,%r1; @%p1 bra top;").loop
    assert roles("top: setp.lt.s32 %p1,%r2,%r1; and.pred %p3,%p1,%p2; @%p3 bra top;").loop
    assert not roles("setp.lt.s32 %p1,%r2,%r1; @%p1 bra done; done:").loop


@pytest.mark.parametrize(
    "body",
    [
        "top: setp.ge.s32 %p1,%r2,%r1; @%p1 bra out; add.s32 %r2,%r2,1; bra top; out:",
        "top: setp.lt.s32 %p1,%r2,%r1; not.pred %p2,%p1; @%p2 bra out; bra in; in: add.s32 %r2,%r2,1; bra top; out:",
        "top: setp.ge.s32 %p1,%r2,%r1; @%p1 ret; bra top;",
        "top: inner: setp.ge.s32 %p1,%r2,%r1; @%p1 bra next; bra inner; next: @%p3 bra top;",
        "top: setp.lt.s32 %p1,%r2,%r1; selp.b32 %r3,1,0,%p1; setp.ne.s32 %p2,%r3,0; @%p2 bra top;",
    ],
    ids=["forwards", "unoptimised", "ret", "inner", "as-number"],
)
def test_a_loop_ends_by_a_branch_out_of_it(body: str) -> None:
    assert roles(body).loop


def test_a_branch_within_a_loop_does_not_end_it() -> None:
    body = "top: setp.ge.s32 %p1,%r2,%r1; @%p1 bra next; add.s32 %r2,%r2,1; next: @%p3 bra top;"
    found = roles(body)
    assert (found.bound, found.loop) == (True, False)


@pytest.mark.parametrize(
    "body",
    [
        "setp.lt.s32 %p1,%r2,%r1; @%p1 ld.global.f32 %f1,[%rd1];",
        "setp.lt.s32 %p1,%r2,%r1; and.pred %p3,%p1,%p2; @!%p3 red.global.add.f32 [%rd1],%f1;",
        "setp.ge.s32 %p1,%r2,%r1; @%p1 bra out; st.global.f32 [%rd1],%f1; out:",
        "setp.ge.s32 %p1,%r2,%r1; @%p1 ret; st.global.f32 [%rd1],%f1;",
        "setp.lt.s32 %p1,%r2,%r1; @%p1 bra in; bra out; in: st.global.f32 [%rd1],%f1; out:",
        "setp.lt.s32 %p1,%r2,%r1; @%p1 bra in; ret; in: st.global.f32 [%rd1],%f1;",
        "setp.lt.s32 %p1,%r2,%r1; selp.b32 %r3,16,0,%p1; cp.async.cg.shared.global [%r4],[%rd1],16,%r3;",
        "setp.lt.s32 %p1,%r2,%r1; cp.async.cg.shared.global [%r4],[%rd1],16,%p1;",
    ],
    ids=["guard", "logic", "branch", "ret", "leap", "leap-ret", "size", "ignore"],
)
def test_a_comparison_guards_accesses(body: str) -> None:
    found = roles(body)
    assert (found.bound, found.guard) == (True, True)


@pytest.mark.parametrize(
    "body",
    [
        "setp.lt.s32 %p1,%r2,%r1; @%p1 add.s32 %r3,%r3,1; st.global.f32 [%rd1],%f1;",
        "setp.ge.s32 %p1,%r2,%r1; @%p1 bra out; add.s32 %r3,%r3,1; out: st.global.f32 [%rd1],%f1;",
        ".local .b32 own; mov.u64 %rd2,own; setp.lt.s32 %p1,%r2,%r1; @%p1 st.local.u32 [%rd2],%r3;",
        "@%p1 ld.global.f32 %f1,[%rd1]; add.s32 %r3,%r1,1;",
    ],
    ids=["another", "passed", "own-memory", "no-comparison"],
)
def test_what_guards_no_access(body: str) -> None:
    assert not roles(body).guard


def test_a_stride_is_multiplied_into_an_address() -> None:
    address = "mul.wide.s32 %rd3,%r4,4; add.s64 %rd2,%rd1,%rd3; ld.global.f32 %f1,[%rd2];"
    found = roles(f"mul.lo.s32 %r4,%r3,%r1; {address}")
    assert (found.factor, found.stride, found.address) == (True, True, True)
    found = roles(f"shl.b32 %r5,%r1,2; mad.lo.s32 %r4,%r3,%r5,%r6; {address}")
    assert (found.factor, found.stride, found.address) == (True, True, True)
    found = roles(f"mov.u32 %r3,%tid.x; mul.lo.s32 %r4,%r1,%r3; {address}")
    assert found.stride
    found = roles(f"mul.lo.s32 %r4,%r1,12; {address}")
    assert (found.factor, found.stride, found.address) == (False, False, True)
    found = roles("mul.lo.s32 %r4,%r3,%r1; st.global.u32 [%rd1],%r4;")
    assert (found.factor, found.stride, found.stored) == (True, False, True)


def test_the_rows_of_a_matrix_lie_a_stride_apart() -> None:
    found = roles("wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8},[%rd1],%r1;")
    assert (found.factor, found.stride) == (True, True)


def test_a_lane_s_number_is_no_value_passed_on() -> None:
    found = roles("shfl.sync.idx.b32 %r2,%r3,%r1,31,-1; add.f32 %f1,%r2,%f2;")
    assert not found.as_float


def test_elements_by_way_of_spills_and_functions() -> None:
    spill = ".local .b32 slot; ld.param.u64 %rd1,[p]; ld.global.b32 %r1,[%rd1]; st.local.b32 [slot],%r1;"
    assert parts(f"{spill} ld.local.b32 %r2,[slot]; add.f32 %r3,%r2,%r2;", ".param .u64 p")[0, 0].elements == {"f32"}


def test_shared_memory_that_is_used_twice_tells_nothing_of_elements() -> None:
    body = (
        ".shared .b8 pool[64]; ld.param.u64 %rd1,[p]; ld.global.b32 %r1,[%rd1]; mov.u32 %r2,pool;\n"
        "add.s32 %r3,%r2,%r8; st.shared.b32 [%r3],%r1; ld.shared.b32 %r4,[%r3]; add.s32 %r5,%r4,1;"
    )
    assert parts(body, ".param .u64 p")[0, 0].elements == {"b32"}


def test_divisors_and_factors() -> None:
    found = roles("div.s32 %r2,%r3,%r1; mul.lo.s32 %r4,%r2,%r1;")
    assert (found.divisor, found.factor) == (True, True)
    found = roles("div.s32 %r2,%r1,%r3; mul.lo.s32 %r4,%r1,4;")
    assert (found.divisor, found.factor) == (False, False)


def test_integers_have_a_type_only_where_the_sign_counts() -> None:
    assert roles("add.s32 %r2,%r1,%r3;").types == set()
    assert roles("shr.u32 %r2,%r1,3;").types == {"u32"}
    assert roles("add.f32 %f1,%r1,%f2;", ".param .b32 n").types == {"f32"}


@pytest.mark.parametrize(
    ("body", "element"),
    [
        ("ld.global.f32 %f1,[%rd1];", "f32"),
        ("ld.global.b32 %r1,[%rd1]; add.f32 %r2,%r1,%r3;", "f32"),
        ("ld.global.b32 %r1,[%rd1]; mov.b32 {%h1,%h2},%r1; cvt.f32.f16 %f1,%h1;", "f16"),
        # A bf16 becomes an f32 by zeros below it: the word that it came from holds no f32.
        ("ld.global.b32 %r1,[%rd1]; mov.b32 {%h1,%h2},%r1; mov.b32 %r2,{%h3,%h1}; add.f32 %r4,%r2,%r3;", "b32"),
        ("ld.global.v2.b32 {%r1,%r2},[%rd1]; mul.f16x2 %r3,%r1,%r2;", "f16"),
        ("mul.f32 %r2,%r3,%r4; mov.b32 %r1,%r2; st.global.b32 [%rd1],%r1;", "f32"),
        ("ld.global.u32 %r1,[%rd1]; add.s32 %r2,%r1,1;", "s32"),
        ("ld.global.u32 %r1,[%rd1];", "u32"),
        ("st.global.u32 [%rd1],1065353216;", "b32"),
        ("ld.global.b16 %h1,[%rd1]; st.global.b16 [%rd2],%h1;", "b16"),
        ("ld.global.u64 %rd3,[%rd1]; ld.global.f32 %f1,[%rd3];", "ptr"),
        ("atom.global.add.f64 %fd1,[%rd1],%fd2;", "f64"),
    ],
)
def test_elements_are_what_their_registers_are_used_as(body: str, element: str) -> None:
    found = parts(f"ld.param.u64 %rd1,[p]; {body}", ".param .u64 p")
    assert found[0, 0].elements == {element}


def test_members_of_a_struct_are_told_apart() -> None:
    found = parts(
        "ld.param.u64 %rd1,[s]; ld.param.v2.b32 {%r1,%r2},[s+8]; st.global.f32 [%rd1],%f1;\n"
        "mul.f32 %r3,%r1,%r1; setp.lt.s32 %p1,%r4,%r2;",
        ".param .align 8 .b8 s[16]",
    )
    assert list(found) == [(0, 0), (0, 8), (0, 12)]
    assert [part.pointer for part in found.values()] == [True, False, False]
    assert [part.types for part in found.values()] == [set(), {"f32"}, {"s32"}]


def test_moves_in_a_circle_end() -> None:
    body = "ld.param.u64 %rd1,[p]; ld.global.b32 %r1,[%rd1]; mov.b32 %r2,%r1; mov.b32 %r1,%r2; mov.b32 %r1,%r1;"
    assert parts(body, ".param .u64 p")[0, 0].elements == {"b32"}


def test_a_constant_joins_nothing() -> None:
    body = (
        "ld.param.u64 %rd1,[p]; mov.b32 %r5,0; mov.b32 %r1,%r5; @%p1 ld.global.b32 %r1,[%rd1]; mov.b32 %r2,%r5;\n"
        "add.s32 %r2,%r2,1;"
    )
    assert parts(body, ".param .u64 p")[0, 0].elements == {"b32"}
