from __future__ import annotations

import pytest

from teenycli.ptx.usage import Access, Load, Usage, usage_of
from tests.ptx.text import code

pytestmark = pytest.mark.unit


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
