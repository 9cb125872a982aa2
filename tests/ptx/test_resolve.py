from __future__ import annotations

import pytest

from teenycli.errors import TeenyError
from teenycli.ptx import code_of
from teenycli.ptx.code import Label, Mem, Pair, Reg, Special, Symbol, Vec
from teenycli.ptx.model import Float, Function, Int, Variable
from tests.ptx.text import code, module_of

pytestmark = pytest.mark.unit


def error(body: str) -> TeenyError:
    with pytest.raises(TeenyError) as caught:
        code(body)
    return caught.value


class TestInstructions:
    def test_modifiers_are_named_in_any_order(self) -> None:
        ops = code("add.f32.rn %f1,%f2,%f3; ld.u32.global %r1,[%rd1]; cvt.rn.f32.f64 %f1,%fd1;").ops
        assert dict(ops[0].mods) == {"type": "f32", "rnd": "rn"}
        assert (ops[1].mods["space"], ops[1].mods["type"]) == ("global", "u32")
        assert (ops[2].mods["dtype"], ops[2].mods["atype"], ops[2].mods["rnd"]) == ("f32", "f64", "rn")

    def test_operands(self) -> None:
        ops = code(
            "mov.u32 %r1, %tid.x; mov.b64 {%r1,_}, %rd1; ld.global.v2.u32 {%r1,%r2},[%rd1+-8];\n"
            "setp.lt.s32 %p1|%p2, %r1, -5; fma.rn.f32 %f1,%f2,0f3F800000,1.5; @!%p1 bra L; L:"
        ).ops
        assert ops[0].operands[1] == Special("%tid", "x")
        first = ops[1].operands[0]
        assert isinstance(first, Vec)
        assert first.items[1] is None
        address = ops[2].operands[1]
        assert isinstance(address, Mem)
        assert address.offset == -8
        assert isinstance(ops[3].operands[0], Pair)
        assert ops[3].operands[2] == Int(-5)
        assert ops[4].operands[2] == Float(0x3F800000, 32)
        assert ops[5].guard is not None
        assert ops[5].guard.negated
        assert ops[5].operands == (Label("L"),)

    def test_a_vector_of_one_in_a_scalar_place_is_the_scalar(self) -> None:
        (load, *_) = code("ld.global.b32 { %r1 }, [ %rd1 + 0 ];").ops
        assert isinstance(load.operands[0], Reg)

    def test_places_and_loc(self) -> None:
        ops = code(".loc 1 7 3\nadd.s32 %r1,%r2,%r3;\n  sub.s32 %r1,%r2,%r3;").ops
        assert ops[0].loc == ops[1].loc == (1, 7, 3)
        assert ops[1].at.line == ops[0].at.line + 1
        assert ops[1].at.column == 3

    def test_symbols(self) -> None:
        ops = code(".shared .align 8 .b8 s[64]; mov.u32 %r1, s+4; ld.shared.u32 %r1,[s+8]; mov.u64 %rd1, k;").ops
        first, second = ops[0].operands[1], ops[1].operands[1]
        assert isinstance(first, Symbol)
        assert isinstance(first.target, Variable)
        assert (first.target.name, first.offset) == ("s", 4)
        assert isinstance(second, Mem)
        assert second.base is first.target
        last = ops[2].operands[1]
        assert isinstance(last, Symbol)
        assert isinstance(last.target, Function)


class TestScopes:
    def test_an_inner_register_shadows_an_outer_one(self) -> None:
        ops = code("mov.b32 %r1, 1; { .reg .b32 %r1; mov.b32 %r1, 2; } mov.b32 %r1, 3;").ops
        registers = [op.operands[0].register for op in ops[:3] if isinstance(op.operands[0], Reg)]
        assert registers[0] is registers[2]
        assert registers[1] is not registers[0]

    def test_the_same_label_in_two_blocks(self) -> None:
        found = code("{ W: bra W; } { W: bra W; }")
        assert found.labels == {"W": 0, "W#2": 1}
        assert [op.operands[0] for op in found.ops[:2]] == [Label("W"), Label("W#2")]

    def test_a_register_without_percent_from_inline_asm(self) -> None:
        assert len(code("{ .reg .pred p, t<3>; setp.eq.s32 p, %r1, 0; @p mov.b32 %r1, 1; @!t2 bra E; } E:").ops) == 4

    def test_a_range_declares_zero_to_n_less_one(self) -> None:
        code(".reg .b32 x<3>; mov.b32 x2, 1;")
        assert "'x3' is not declared" in str(error(".reg .b32 x<3>; mov.b32 x3, 1;"))

    @pytest.mark.parametrize(
        "body",
        [".reg .b32 %r1;", ".reg .b32 a; .reg .u32 a;", ".reg .b32 x<3>, x1;", ".reg .b32 x1, x<3>;", "L: L:",
         ".shared .b32 s; .shared .b32 s;"],
    )  # fmt: skip
    def test_twice_in_one_scope_is_an_error(self, body: str) -> None:
        assert error(body).finding.id == "declared-twice"

    def test_a_label_of_an_inner_scope_is_not_seen_outside(self) -> None:
        assert error("bra L; { L: ret; }").finding.id == "undeclared"

    def test_an_undeclared_register_gets_a_suggestion(self) -> None:
        assert error("mov.b32 %r1, 0; mov.b32 %r1, %rr1;").finding.hint == "did you mean '%r1'?"


class TestRefusals:
    """What ptxas refuses too (checked by hand with ptxas 13.0)."""

    @pytest.mark.parametrize(
        "body",
        [
            "add.s32 %r1, %r2;", "add.s32 %r1,%rd1,%r2;", "add.s32 %r1,%r2,1.0;", "add.f32 %f1,%f2,1;",
            "add.s32 1,%r1,%r2;", "add.u32 %r1,%tid.x,1;", "mov.u32 %r1,%tid;", "mov.u32 %r1,%tid.q;",
            "setp.lt.s32 %p1,%f1,%r2;", "mul.lo.s32.u32 %r1,%r2,%r3;", "ld.global.u32 %r1,[%r1];",
            "ld.global.f32 %r1,[%p1];", "ld.global.u32 %r1,[%f1];", "ld.global.u32 %h1,[%rd1];",
            "ld.global.u32 %f1,[%rd1];", "st.global.u32 [%rd1],%f1;", "cvt.u32.u64 %r1,%r2;",
            "mov.b64 {%h1,%h2}, %rd1;", "mov.u64 %rd1,{%r1,%r2};", "shl.b32 %r1,%r1,%rd1;", "bra %r1;",
            "ret %r1;", "bar.sync;", "trap 1;", "exit.uni;", "add.s32 _,%r1,%r2;", "mov.u32 %f1,%r1;",
            "mov.b64 %rd1,0f3F800000;", "setp.eq.s32 %p1,%r1,%p2;", "@%r1 ret;", "ld.global.u32 %r1,[%rd1],%p1;",
            "st.shared.u32 [%r1],{1,2};", "st.global.v4.f32 [%rd1],{%f1,%f2,%f3};", "add.u8 %h1,%h1,%h1;",
            "mov.u32 %r1,0f3F800000;", "call foo;", "vadd.s32.s32.s32 %r1,%r2,-%r3;", "add.u64 %rd1,k,4;",
        ],
    )  # fmt: skip
    def test_refused(self, body: str) -> None:
        assert error(body).finding.where is not None

    @pytest.mark.parametrize(
        "body",
        [
            "ld.global.u32 %r1,[%rd1-4];", "mov.u32 %r1, 08;", "add.s32 %r1,%r2,%r3", "add.s32 %r1 %r2,%r3;", ";;",
            "add.s32 %r1,,%r3;", "add.s32 %r1,%r2,%r3,;", "@%p1 { ret; }", "@%p1 L: ret;", ", ret;",
            "ld.global.u32 %r1,[%rd1+%r1];", "{", "}", ".reg .b32 1a;", ".reg .b32 _;", "mov.u32 %r1, (1;",
        ],
    )  # fmt: skip
    def test_syntax(self, body: str) -> None:
        assert error(body).finding.id == "syntax"

    def test_messages_name_both_sides(self) -> None:
        caught = error("add.s32 %r1,%rd1,%r2;")
        assert "'add.s32' does not take its operand 2: '%rd1' is .b64, .s32 is wanted" in str(caught)

    @pytest.mark.parametrize(
        ("tail", "why"),
        [("0, 1, 0, 0", "scale_a is -1 or 1, not 0"), ("1, -3, 0, 0", "scale_b is -1 or 1, not -3"),
         ("1, 1, 2, 0", "trans_a is 0 or 1, not 2")],
    )  # fmt: skip
    def test_a_constant_that_is_none_of_those_it_may_be(self, tail: str, why: str) -> None:
        product = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, %p1"
        code(f"{product}, -1, 1, 0, 1;")
        caught = error(f"{product}, {tail};")
        assert caught.finding.id == "bad-operand"
        assert why in str(caught)

    def test_an_unknown_opcode_gets_a_suggestion(self) -> None:
        caught = error("addd.s32 %r1,%r2,%r3;")
        assert (caught.finding.id, caught.finding.hint) == ("unknown-opcode", "did you mean 'add'?")

    def test_an_unknown_modifier_is_named(self) -> None:
        caught = error("add.s33 %r1,%r2,%r3;")
        assert caught.finding.id == "bad-modifier"
        assert "takes no '.s33'" in str(caught)

    def test_nesting_is_bounded(self) -> None:
        assert "nested" in str(error("{" * 3000 + "}" * 3000))
        assert "nested" in str(error("mov.b32 %r1, " + "{" * 3000 + "%r1" + "}" * 3000 + ";"))


class TestAccepted:
    """What ptxas takes too, however odd."""

    @pytest.mark.parametrize(
        "body",
        [
            "ld .global .u32 %r1,[%rd1+4*2];", "add.f32 %f1,%r1,%f2;", "and.b32 %r1,%f1,%r1;", "mov.pred %p1,1;",
            "setp.lt.and.f32 %p1|%p2,%f1,%f2,!%p3;", "cvt.u32.u16 %rd1,%h1;", "ld.global.f32 %rd1,[%rd1];",
            "atom.global.add.u32 _,[%rd1],1;", "mov.f32 %f1,0d3FF0000000000000;", "selp.b32 %r1,0f3F800000,0,%p1;",
            ".reg .v4 .f32 v; mov.f32 v.x,%f1; mov.f32 v.r,%f1;", ".reg .v2 .b32 v; ld.global.v2.b32 v,[%rd1];",
            ".reg .b32 add; mov.b32 add, 1;", "add: ret;", "mov.u16 %h1,%tid.x;", "add.sat.s32.sat %r1,%r2,%r3;",
            "cvt.u64.u32 %rd1,%laneid;", "not.pred %p1,!%p2;", "@ !%p1 ret;", "vmad.s32.s32.s32 %r1,%r2,%r3,-%r4;",
            "T: .branchtargets A,B; brx.idx %r1, T; A: B:", "ld.shared.u32 %r1,[%h1];", "mov.u32 %r1, p;",
            "shfl.sync.bfly.b32 %r1|%p1,%r2,1,31,-1;", "mov.u32 %r1, WARP_SZ+1;", "bar.sync %r1, 64;",
        ],
    )  # fmt: skip
    def test_accepted(self, body: str) -> None:
        code(body)


class TestCalls:
    HEAD = (
        ".func (.param .b32 r) f(.param .b32 a) { ret; }\n.func g() { ret; }\n"
        ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
    )

    def test_direct(self) -> None:
        found = code(
            "{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r1; call.uni (r), f, (a); ld.param.b32 %r1,[r]; }\n"
            "call g;",
            head=self.HEAD,
        )
        first, second = found.ops[1].call, found.ops[3].call
        assert first is not None
        assert second is not None
        assert isinstance(first.target, Function)
        assert (first.target.name, len(first.args), len(first.returns)) == ("f", 1, 1)
        assert second.args == ()

    def test_indirect_needs_a_prototype(self) -> None:
        found = code("P: .callprototype (.param .b32 _) _ (.param .b32 _); call (%r1), %rd1, (%r2), P;", head=self.HEAD)
        call = found.ops[0].call
        assert call is not None
        assert call.table is not None
        assert len(call.table.params) == 1
        assert "needs a .callprototype" in str(error("call (%r1), %rd1, (%r2);"))

    def test_counts(self) -> None:
        with pytest.raises(TeenyError) as caught:
            code("call (%r1), f, (%r2, %r3);", head=self.HEAD)
        assert caught.value.finding.id == "call-mismatch"
        assert "has 1 arguments, the call gives 2" in str(caught.value)


def test_code_is_kept_on_the_module() -> None:
    module = module_of(".entry k() { ret; }")
    assert code_of(module, module.entries[0]) is code_of(module, module.entries[0])


@pytest.mark.parametrize(
    "body",
    [
        "ld.global.u32 %r1,[p];", ".shared .b32 x; ld.local.u32 %r1,[x];",
        ".shared .b32 x; atom.global.add.u32 %r1,[x],1;",
        ".shared .b32 x; ld.shared.u32 %r1, x[0];", "ld.param.u32 %r1,[k];", ".reg .v4 .v4 .b32 x;",
    ],
)  # fmt: skip
def test_a_symbol_of_another_space_or_shape_is_refused(body: str) -> None:
    assert error(body).finding.where is not None
