from __future__ import annotations

import pytest

from teenycli.ptx import code_of, outline, read_source
from teenycli.ptx.usage import Access, Load, Usage, usage_of
from tests.commands.teeny import ROOT
from tests.ptx.text import code

pytestmark = pytest.mark.unit

LOADS, STORES = Access("load", "global", "f32"), Access("store", "global", "f32")
#: Two functions: one that loads through its argument and one that stores.
HELPERS = """
.func (.param .b32 v) get(.param .b64 p)
{ .reg .b64 %q; .reg .f32 %x; ld.param.b64 %q,[p]; ld.global.f32 %x,[%q]; st.param.f32 [v],%x; ret; }
.func put(.reg .b64 p, .reg .f32 x) { st.global.f32 [p],x; ret; }
.func (.reg .b64 r) next(.reg .b64 p) { add.u64 r,p,4; ret; }
"""
X_Y = ".param .u64 x, .param .u64 y"
LOAD_X_Y = "ld.param.u64 %rd1,[x]; ld.param.u64 %rd2,[y];"


def usage(body: str, params: str, head: str = "") -> tuple[Usage, ...]:
    return usage_of(code(body, params, head))


def test_a_pointer_with_its_accesses_and_the_scalar_in_its_address() -> None:
    x, n = usage(
        "ld.param.u64 %rd1,[x]; ld.param.u32 %r1,[n]; cvta.to.global.u64 %rd2,%rd1; mul.wide.s32 %rd3,%r1,4;\n"
        "add.s64 %rd4,%rd2,%rd3; ld.global.f32 %f1,[%rd4]; st.global.v2.f32 [%rd4+8],{%f1,%f1};",
        ".param .u64 x, .param .u32 n",
    )
    assert x.pointer
    assert x.accesses == (Access("load", "global", "f32"), Access("store", "global", "f32", 2))
    assert [access.bytes for access in x.accesses] == [4, 8]
    assert x.loads == (Load(0, 8, "u64"),)
    assert not n.pointer
    assert n.address
    assert n.as_integer


def test_the_newer_dialect_keeps_floats_in_b32() -> None:
    a, b = usage(
        "ld.param.b32 %r1,[a]; ld.param.b32 %r2,[b]; mov.b32 %r3,%r1; add.f32 %r4,%r3,%r4; setp.lt.s32 %p1,%r2,5;",
        ".param .u32 a, .param .u32 b",
    )
    assert (a.as_float, a.as_integer) == (True, False)
    assert (b.as_float, b.as_integer) == (False, True)


def test_struct_loads_have_offsets() -> None:
    (s,) = usage("ld.param.u64 %rd1,[s+8]; ld.param.v2.f32 {%f1,%f2},[s+16];", ".param .align 8 .b8 s[24]")
    assert s.loads == (Load(8, 8, "u64"), Load(16, 4, "f32"), Load(20, 4, "f32"))


def test_a_value_through_a_loop_is_followed() -> None:
    (x,) = usage(
        "ld.param.u64 %rd1,[x]; mov.b64 %rd2,%rd3; L: mov.b64 %rd3,%rd1; ld.global.u32 %r1,[%rd2]; @%p1 bra L;",
        ".param .u64 x",
    )
    assert x.pointer


def test_what_is_never_loaded_is_unused() -> None:
    a, b = usage("ld.param.u32 %r1,[a];", ".param .u32 a, .param .u32 b")
    assert not a.unused
    assert b.unused


def test_atomics() -> None:
    (x,) = usage("ld.param.u64 %rd1,[x]; red.global.add.f32 [%rd1],%f1;", ".param .u64 x")
    assert x.accesses == (Access("atomic", "global", "f32"),)


def test_a_chain_written_backwards_takes_linear_time() -> None:
    count = 5000
    moves = "\n".join(f"mov.u64 a{i + 1}, a{i};" for i in reversed(range(count)))
    body = f".reg .u64 a<{count + 1}>; {moves} ld.param.u64 a0,[p]; ld.global.u32 %r1,[a{count}];"
    (p,) = usage(body, ".param .u64 p")
    assert p.pointer


# --- calls ---------------------------------------------------------------------------------------------------------


def test_arguments_in_parameter_space_and_in_registers_are_followed_into_functions() -> None:
    x, y = usage(
        LOAD_X_Y + "{ .param .b64 a; .param .b32 b; st.param.b64 [a],%rd1; call (b), get, (a); ld.param.f32 %f1,[b]; }"
        "call put, (%rd2, %f1);",
        X_Y,
        HELPERS,
    )
    assert (x.accesses, y.accesses) == ((LOADS,), (STORES,))
    assert x.pointer
    assert y.pointer
    assert not x.escaped
    assert not y.escaped


def test_results_come_back_to_their_own_call_alone() -> None:
    x, y = usage(
        LOAD_X_Y + "call (%rd3), next, (%rd1); call (%rd4), next, (%rd2);\n"
        "ld.global.f32 %f1,[%rd3]; st.global.f32 [%rd4],%f1;",
        X_Y,
        HELPERS,
    )
    assert (x.accesses, y.accesses) == ((LOADS,), (STORES,))


def test_results_in_parameter_space() -> None:
    (n,) = usage(
        "ld.param.u32 %r1,[n]; { .param .b32 a; .param .b32 b; st.param.b32 [a],%r1; call (b), same, (a);\n"
        "ld.param.b32 %r2,[b]; } setp.lt.s32 %p1,%r3,%r2; @%p1 st.global.f32 [%rd1],%f1;",
        ".param .u32 n",
        ".func (.param .b32 v) same(.param .b32 w) { .reg .b32 %t; ld.param.b32 %t,[w]; st.param.b32 [v],%t; ret; }",
    )
    assert n.bound
    assert n.guard


def test_a_function_that_calls_itself_comes_to_an_end() -> None:
    x, n = usage(
        "ld.param.u64 %rd1,[x]; ld.param.u32 %r1,[n]; call walk, (%rd1, %r1);",
        ".param .u64 x, .param .u32 n",
        ".func walk(.reg .b64 p, .reg .b32 k) { .reg .pred %q; .reg .b64 %t; setp.eq.s32 %q,k,0; @%q ret;\n"
        "st.global.f32 [p],0f00000000; add.u64 %t,p,4; sub.s32 k,k,1; call walk, (%t, k); ret; }",
    )
    assert x.accesses == (STORES,)
    assert x.pointer
    assert n.bound
    assert not n.address


def test_two_functions_that_call_each_other() -> None:
    (x,) = usage(
        "ld.param.u64 %rd1,[x]; call odd, (%rd1);",
        ".param .u64 x",
        ".func even(.reg .b64 p);\n.func odd(.reg .b64 p) { call even, (p); ret; }\n"
        ".func even(.reg .b64 p) { .reg .f32 %x; call odd, (p); ld.global.f32 %x,[p]; ret; }",
    )
    assert x.accesses == (LOADS,)
    assert not x.escaped


def test_calls_upon_calls_take_no_time_without_end() -> None:
    count = 40  # a function anew for each call would be 2 ** 40
    functions = [".func f0(.reg .b64 p) { st.global.f32 [p],0f00000000; ret; }"]
    functions += [f".func f{k}(.reg .b64 p) {{ call f{k - 1},(p); call f{k - 1},(p); ret; }}" for k in range(1, count)]
    (x,) = usage(f"ld.param.u64 %rd1,[x]; call f{count - 1},(%rd1);", ".param .u64 x", "\n".join(functions))
    assert x.accesses == (STORES,)
    assert not x.escaped


@pytest.mark.parametrize(
    ("call", "head"),
    [
        ("{ .param .b64 t; st.param.b64 [t],%rd1; call f,(t); }", ".extern .func f(.param .b64 x);"),
        ("call f,(%rd1);", ".extern .func f(.reg .b64 x);"),
        ("add.u64 %rd2,%rd1,%rd3; call f,(%rd2);", ".extern .func f(.reg .b64 x);"),
        ("mov.u64 %rd3,f; F: .callprototype _ (.reg .b64 _); call %rd3,(%rd1),F;", ".func f(.reg .b64 x) { ret; }"),
        ("call f,(%rd1);", ".func f(.reg .b64 x) { no such instruction; }"),
    ],
    ids=["extern", "extern-register", "derived", "indirect", "unreadable"],
)
def test_what_an_unknown_function_takes_has_escaped(call: str, head: str) -> None:
    x, y = usage(f"ld.param.u64 %rd1,[x]; ld.param.u64 %rd4,[y]; {call}", X_Y, head)
    assert x.escaped
    assert x.opaque
    assert not x.unused
    assert not y.escaped


# --- memory --------------------------------------------------------------------------------------------------------


SPILL = ".local .align 8 .b8 depot[64]; .reg .b64 %SP; .reg .b64 %SPL; mov.u64 %SPL,depot; cvta.local.u64 %SP,%SPL;"


@pytest.mark.parametrize(
    "body",
    [
        "st.local.u64 [%SPL+8],%rd1; ld.local.u64 %rd3,[%SPL+8];",
        "st.u64 [%SP+8],%rd1; ld.u64 %rd3,[%SP+8];",
        "st.local.u64 [depot+8],%rd1; add.u64 %rd4,%SP,16; ld.u64 %rd3,[%rd4+-8];",
        "add.u64 %rd4,%SPL,8; sub.u64 %rd5,%rd4,8; st.local.u64 [%rd5+8],%rd1; ld.local.u64 %rd3,[depot+8];",
        "or.b64 %rd4,%SPL,8; st.local.u64 [%rd4],%rd1; ld.local.u64 %rd3,[depot+8];",
        "st.local.v2.u64 [%SPL+16],{%rd5,%rd1}; ld.local.u64 %rd3,[%SPL+24];",
        "st.local.u64 [%SPL],%rd1; cvt.u64.u32 %rd5,%r1; add.u64 %rd4,%SPL,%rd5; ld.local.u64 %rd3,[%rd4];",
        "cvt.u64.u32 %rd5,%r1; add.u64 %rd4,%SPL,%rd5; st.local.u64 [%rd4],%rd1; ld.local.u64 %rd3,[%SPL+8];",
        "st.local.u64 [%SPL],%SP; ld.local.u64 %rd5,[%SPL]; st.u64 [%rd5+8],%rd1; ld.local.u64 %rd3,[%SPL+8];",
        "alloca.u64 %rd4,16; st.local.u64 [%rd4],%rd1; ld.local.u64 %rd3,[%rd4];",
        "atom.exch.b64 %rd5,[%SP],%rd1; ld.local.u64 %rd3,[%SPL];",
    ],
    ids=[
        "local",
        "generic",
        "named",
        "sums",
        "or",
        "vector",
        "anywhere",
        "stored-anywhere",
        "pointer",
        "alloca",
        "atom",
    ],
)
def test_a_value_comes_back_from_the_memory_of_the_thread(body: str) -> None:
    x, y = usage(f"{LOAD_X_Y} {SPILL} {body} st.global.f32 [%rd3],%f1; ld.global.f32 %f2,[%rd2];", X_Y)
    assert x.accesses == (STORES,)
    assert x.pointer
    assert not x.escaped
    assert not x.stored
    assert y.accesses == (LOADS,)


def test_what_lies_elsewhere_in_a_variable_stays_there() -> None:
    x, y = usage(
        f"{LOAD_X_Y} {SPILL} st.local.u64 [%SPL],%rd1; st.local.u64 [%SPL+8],%rd2;\n"
        "ld.local.u64 %rd3,[%SPL]; ld.local.u64 %rd4,[%SPL+8]; ld.global.f32 %f1,[%rd3]; st.global.f32 [%rd4],%f1;",
        X_Y,
    )
    assert (x.accesses, y.accesses) == ((LOADS,), (STORES,))


def test_a_load_over_two_stores_is_neither() -> None:
    a, b = usage(
        f"ld.param.u32 %r1,[a]; ld.param.u32 %r2,[b]; {SPILL} st.local.u32 [%SPL],%r1; st.local.u32 [%SPL+4],%r2;\n"
        "ld.local.u64 %rd3,[%SPL]; ld.global.f32 %f1,[%rd3];",
        ".param .u32 a, .param .u32 b",
    )
    for use in (a, b):
        assert (use.address, use.pointer) == (True, False)
        assert [part.size for part in use.parts] == [4]


def test_a_function_stores_into_a_variable_of_its_caller() -> None:
    x, _ = usage(
        f"{LOAD_X_Y} {SPILL} call set,(%SP, %rd1); ld.local.u64 %rd3,[depot]; st.global.f32 [%rd3],%f1;",
        X_Y,
        ".func set(.reg .b64 slot, .reg .b64 value) { st.u64 [slot],value; ret; }",
    )
    assert x.accesses == (STORES,)


def test_what_lies_in_a_variable_whose_address_is_handed_out_has_escaped() -> None:
    x, y = usage(f"{LOAD_X_Y} {SPILL} st.local.u64 [%SPL+8],%rd1; call f,(%SP);", X_Y, ".extern .func f(.reg .b64 x);")
    assert x.escaped
    assert not y.escaped
    x, _ = usage(f"{LOAD_X_Y} {SPILL} st.local.u64 [%SPL+8],%rd1; st.global.u64 [%rd2],%SP;", X_Y)
    assert x.escaped


def test_what_is_stored_where_either_the_thread_s_memory_or_a_buffer_may_be_has_escaped() -> None:
    x, _ = usage(f"{LOAD_X_Y} {SPILL} selp.b64 %rd5,%SP,%rd2,%p1; st.u64 [%rd5],%rd1;", X_Y)
    assert x.stored
    assert x.escaped


def test_what_is_stored_in_the_thread_s_memory_at_an_unknown_address_has_escaped() -> None:
    x, y = usage(f"{LOAD_X_Y} st.local.u64 [%rd5],%rd1; st.shared.u64 [%r5],%rd2;", X_Y)
    assert x.escaped
    assert y.escaped


SHARED = ".shared .align 8 .b64 slot; .reg .b32 %s; mov.u32 %s,slot;"


def test_a_value_comes_back_from_shared_memory() -> None:
    x, _ = usage(
        f"{LOAD_X_Y} {SHARED} st.shared.u64 [slot],%rd1; ld.shared.u64 %rd3,[%s]; st.global.f32 [%rd3],%f1;", X_Y
    )
    assert x.accesses == (STORES,)
    assert not x.escaped


@pytest.mark.parametrize("load", ["ld.shared.u64 %rd3,[%r5];", "call f;"])
def test_what_lies_in_shared_memory_has_escaped_where_all_of_it_may_be_read(load: str) -> None:
    x, _ = usage(f"{LOAD_X_Y} {SHARED} st.shared.u64 [slot],%rd1; {load}", X_Y, ".extern .func f;")
    assert x.escaped


def test_a_pointer_in_global_memory_has_escaped_and_a_number_has_not() -> None:
    x, a, n, offset = usage(
        "ld.param.u64 %rd1,[x]; ld.param.f64 %fd1,[a]; ld.param.u32 %r1,[n]; ld.param.u64 %rd5,[offset];\n"
        "st.global.u64 [%rd2],%rd1; st.global.f64 [%rd2],%fd1; st.global.u32 [%rd2],%r1;\n"
        "add.u64 %rd6,%rd5,%rd7; st.global.u64 [%rd2],%rd6;",
        ".param .u64 x, .param .f64 a, .param .u32 n, .param .u64 offset",
    )
    assert (x.escaped, a.escaped, n.escaped, offset.escaped) == (True, False, False, False)
    assert x.stored
    assert a.stored
    assert n.stored
    assert offset.stored
    (x,) = usage(
        "ld.param.u64 %rd1,[x]; ld.global.f32 %f1,[%rd1]; add.u64 %rd3,%rd1,%rd4; st.global.u64 [%rd2],%rd3;",
        ".param .u64 x",
    )
    assert x.escaped  # what is made of a pointer is one
    (x,) = usage("ld.param.u64 %rd1,[x]; mov.b64 {%r1,%r2},%rd1; st.global.v2.b32 [%rd2],{%r1,%r2};", ".param .u64 x")
    assert x.escaped


def test_what_is_stored_in_a_variable_of_the_module_has_escaped() -> None:
    (n,) = usage("ld.param.u32 %r1,[n]; st.global.u32 [kept],%r1;", ".param .u32 n", ".global .u32 kept;")
    assert n.escaped


def test_a_bulk_copy_takes_what_is_in_shared_memory_along() -> None:
    x, y = usage(
        f"{LOAD_X_Y} {SHARED} st.shared.u64 [slot],%rd1;\ncp.async.bulk.global.shared::cta.bulk_group [%rd2],[%s],16;",
        X_Y,
    )
    assert x.escaped
    assert y.accesses == (Access("store", "global", "b128", 1, "cp.async.bulk"),)


# --- structs -------------------------------------------------------------------------------------------------------


STRUCT = ".param .align 8 .b8 s[24]"


def test_parts_of_a_struct_by_their_address() -> None:
    (s,) = usage(
        "mov.b64 %rd1,s; ld.param.u64 %rd2,[%rd1+8]; cvta.param.u64 %rd3,%rd1; add.u64 %rd4,%rd3,16;\n"
        "ld.param.f32 %f1,[%rd4]; st.global.f32 [%rd2],%f1;",
        STRUCT,
    )
    assert s.loads == (Load(8, 8, "u64"), Load(16, 4, "f32"))
    assert [(part.offset, part.size, part.pointer, part.stored) for part in s.parts] == [
        (8, 8, True, False),
        (16, 4, False, True),
    ]
    assert s.part(8) == s.parts[0]
    assert s.part(0) is None
    assert not s.escaped


def test_an_index_into_a_struct_leaves_nothing_certain_of_its_parts() -> None:
    (s,) = usage(
        "mov.b64 %rd1,s; cvt.u64.u32 %rd5,%r1; add.u64 %rd2,%rd1,%rd5; ld.param.u64 %rd3,[%rd2];\n"
        "ld.param.f32 %f1,[s]; st.global.f32 [%rd3],%f1;",
        STRUCT,
    )
    assert s.writes
    assert s.pointer
    assert s.escaped
    assert s.part(0).escaped  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "use",
    [
        "mov.b64 %rd1,s; st.global.u64 [%rd2],%rd1;",
        "mov.b64 %rd1,s; call f,(%rd1);",
        "prefetch.param.tensormap [s]; mov.b64 %rd1,s; cp.async.ca.shared.global [%r1],[%rd1],16;",
    ],
    ids=["stored", "passed", "copied"],
)
def test_a_struct_whose_address_is_handed_on_has_escaped(use: str) -> None:
    (s,) = usage(f"ld.param.u32 %r3,[s]; {use}", STRUCT, ".extern .func f(.reg .b64 x);")
    assert s.escaped
    assert all(part.escaped for part in s.parts)


def test_a_struct_copied_by_eight_bytes_and_read_by_four_has_parts_of_four() -> None:
    (s,) = usage(
        f"{SPILL} ld.param.u64 %rd1,[s]; st.local.u64 [%SPL],%rd1; ld.local.f32 %f1,[%SPL];\n"
        "ld.local.u32 %r1,[%SPL+4]; add.f32 %f2,%f1,%f1; setp.lt.s32 %p1,%r2,%r1;",
        STRUCT,
    )
    assert s.loads == (Load(0, 8, "u64"),)
    first, second = s.parts
    assert (first.offset, first.size, first.loads) == (0, 4, (Load(0, 4, "f32"),))
    assert (second.offset, second.size, second.loads) == (4, 4, (Load(4, 4, "u32"),))
    assert first.as_float
    assert not first.bound
    assert second.bound
    assert not second.as_float


def test_a_struct_taken_apart_in_registers() -> None:
    (s,) = usage(
        "ld.param.b64 %rd1,[s+8]; mov.b64 {%r1,%r2},%rd1; add.f32 %r3,%r1,%r1; setp.lt.s32 %p1,%r4,%r2;", STRUCT
    )
    assert [(part.offset, part.size, part.as_float, part.bound) for part in s.parts] == [
        (8, 4, True, False),
        (12, 4, False, True),
    ]


def test_a_half_that_is_thrown_away() -> None:
    (s,) = usage("ld.param.b64 %rd1,[s+8]; mov.b64 {_,%r2},%rd1; add.f32 %r3,%r2,%r2;", STRUCT)
    assert [(part.offset, part.as_float) for part in s.parts] == [(12, True)]


def test_a_struct_goes_through_a_function_by_value() -> None:
    (s,) = usage(
        "ld.param.u64 %rd1,[s]; ld.param.u32 %r1,[s+8]; { .param .align 8 .b8 t[16];\n"
        "st.param.b64 [t],%rd1; st.param.b32 [t+8],%r1; call f,(t); }",
        STRUCT,
        ".func f(.param .align 8 .b8 u[16]) { .reg .b64 %a; .reg .b32 %b; .reg .pred %q; .reg .f32 %x;\n"
        "ld.param.u64 %a,[u]; ld.param.u32 %b,[u+8]; setp.ge.s32 %q,%b,7; @%q ret; ld.global.f32 %x,[%a]; ret; }",
    )
    assert [(part.offset, part.pointer, part.guard) for part in s.parts] == [(0, True, False), (8, False, True)]


def test_what_memory_gives_back_holds_nothing_of_what_is_added_to_it() -> None:
    x, n = usage(
        "ld.param.u64 %rd1,[x]; ld.param.u32 %r1,[n]; atom.global.add.u32 %r2,[%rd1],%r1;\n"
        "mul.wide.u32 %rd2,%r2,4; add.u64 %rd3,%rd1,%rd2; ld.global.f32 %f1,[%rd3];",
        ".param .u64 x, .param .u32 n",
    )
    assert x.pointer
    assert (n.address, n.as_integer, n.stored) == (False, True, True)


# --- widths --------------------------------------------------------------------------------------------------------


def test_loads_wider_and_narrower_than_declared() -> None:
    a, b, c, d = usage(
        "ld.param.u32 %r1,[a]; ld.param.u64 %rd1,[b]; ld.param.u32 %r2,[c+2]; ld.param.u16 %h1,[d];",
        ".param .u64 a, .param .u32 b, .param .align 4 .b8 c[4], .param .align 4 .b8 d[4]",
    )
    assert [use.narrow for use in (a, b, c, d)] == [True, False, False, False]
    assert [use.beyond for use in (a, b, c, d)] == [False, True, True, False]


# --- which of the terms of an address is the pointer ---------------------------------------------------------------


def test_the_only_term_of_eight_bytes_is_the_pointer_without_a_conversion() -> None:
    x, n = usage(
        "ld.param.u64 %rd1,[x]; ld.param.u64 %rd2,[n]; mad.lo.s64 %rd3,%rd2,4,%rd1; add.s64 %rd4,%rd3,8;\n"
        "ld.f32 %f1,[%rd4];",
        ".param .u64 x, .param .u64 n",
    )
    assert x.pointer
    assert (n.address, n.base, n.pointer) == (True, False, False)


def test_of_two_such_terms_either_may_be() -> None:
    x, y = usage(f"{LOAD_X_Y} add.s64 %rd3,%rd1,%rd2; ld.f32 %f1,[%rd3];", X_Y)
    for use in (x, y):
        assert (use.address, use.base, use.pointer) == (True, True, False)


@pytest.mark.parametrize("base", ["ld.global.u64 %rd5,[%rd6];", "mov.u64 %rd5,table;"])
def test_a_term_that_no_parameter_brings_may_be_it_too(base: str) -> None:
    (n,) = usage(
        f"ld.param.u64 %rd1,[n]; {base} add.s64 %rd2,%rd5,%rd1; ld.global.f32 %f1,[%rd2];",
        ".param .u64 n",
        ".global .f32 table[9];",
    )
    assert n.address
    assert not n.pointer


# --- the same source, compiled in three ways -----------------------------------------------------------------------


def _told(kernel: str, variant: str) -> list[Usage]:
    module = outline(read_source(str(ROOT / "tests" / "corpus" / "nvcc" / f"parameters{variant}.ptx")))
    (entry,) = (entry for entry in module.entries if entry.name == kernel)
    return list(usage_of(code_of(module, entry)))


def _direction(use: Usage) -> str:
    return ("r" if use.reads else "") + ("w" if use.writes else "") + ("?" if use.opaque else "")


@pytest.mark.parametrize("variant", ["", "_debug", "_unoptimised"])
@pytest.mark.parametrize(
    ("kernel", "directions", "pointers"),
    [
        ("by_calls", ["w", "r", "w", ""], [0, 1, 2]),
        ("by_recursion", ["w", "w"], [0]),
        ("by_address", ["w", "r"], [0, 1]),
        ("by_table", ["w", "w", "r", "r"], [2]),
        ("by_shared", ["w", "r", ""], [0, 1]),
    ],
)
def test_functions_and_spills_change_nothing(
    kernel: str, directions: list[str], pointers: list[int], variant: str
) -> None:
    told = _told(kernel, variant)
    assert [_direction(use) for use in told] == directions
    assert [index for index, use in enumerate(told) if use.pointer] == pointers


@pytest.mark.parametrize("variant", ["", "_debug", "_unoptimised"])
def test_members_are_told_apart_however_they_are_compiled(variant: str) -> None:
    rows, pair, period = _told("by_struct", variant)
    assert [(part.offset, part.size) for part in rows.parts] == [(0, 8), (8, 8), (16, 4), (20, 4), (24, 8)]
    out, given, count, scale, stride = rows.parts
    assert (out.writes, out.reads, out.pointer) == (True, False, True)
    assert (given.writes, given.reads, given.pointer) == (False, True, True)
    assert count.loop
    assert count.bound
    assert not count.address
    assert scale.as_float
    assert not scale.as_integer
    assert stride.stride
    assert not stride.pointer
    assert not stride.bound
    assert [(part.as_float, part.as_integer) for part in pair.parts] == [(False, True), (True, False)]
    assert period.divisor
    assert not period.factor
    assert not any(use.escaped for use in (rows, pair, period))
