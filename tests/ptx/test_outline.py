from __future__ import annotations

from contextlib import nullcontext

import pytest

from teenycli.errors import TeenyError
from teenycli.ptx import Source, code_of, outline, parse_all
from teenycli.ptx.model import Directives, Pointer, Space, SymbolInit
from teenycli.ptx.outline import find_body_end
from tests.ptx.text import HEAD, module_of

pytestmark = pytest.mark.unit


def error(text: str) -> TeenyError:
    with pytest.raises(TeenyError) as caught:
        module_of(text)
    return caught.value


class TestHead:
    def test_version_target_and_address_size(self) -> None:
        module = outline(Source("t.ptx", ".version 9.0\n.target sm_100a, debug\n.address_size 64\n\0".rstrip("\0")))
        assert (module.version, module.target, module.target_options) == ((9, 0), "sm_100a", ("debug",))
        assert module.address_size == 64

    def test_address_size_defaults_to_32(self) -> None:
        assert outline(Source("t.ptx", ".version 1.4\n.target sm_13\n")).address_size == 32

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("hello", "expected '.version'"), (".version 8\n", "expected a version such as 8.0"),
            (".version 8.0\n.entry k {}", "expected '.target'"), (".version 8.0\n", "expected '.target'"),
            (".version 8.0\n.target sm_80\n.address_size 33", "32 or 64, not 33"), ("// only a comment", "'.version'"),
        ],
    )  # fmt: skip
    def test_what_is_missing_is_said(self, text: str, message: str) -> None:
        with pytest.raises(TeenyError) as caught:
            outline(Source("t.ptx", text))
        assert message in str(caught.value)


class TestEntries:
    def test_every_form_of_parameter(self) -> None:
        module = module_of(
            ".visible .entry k(.param .u64 a, .param .u64 .ptr .global .align 16 b, .param .u64 .ptr .align 1 c,\n"
            " .param .align 16 .b8 d[40], .param .f32 e[4], .param .b128 f, .param .u64 .ptr .shared g) { ret; }"
        )
        params = module.entries[0].params
        assert [p.name for p in params] == list("abcdefg")
        assert params[0].pointer is None
        assert params[1].pointer == Pointer(Space.GLOBAL, 16)
        assert params[2].pointer == Pointer(None, 1)
        assert params[6].pointer == Pointer(Space.SHARED, 4)
        assert [(p.size, p.align) for p in params] == [(8, 8)] * 3 + [(40, 16), (16, 4), (16, 16), (8, 8)]
        assert params[3].declared_type == "b8[40]"

    def test_an_entry_without_a_list_has_no_parameters(self) -> None:
        assert module_of(".entry k { ret; }").entries[0].params == ()

    def test_directives(self) -> None:
        module = module_of(
            ".entry k() .reqntid 128, 1, 1 .minnctapersm 4 .maxnreg 64 .explicitcluster .reqnctapercluster 2\n"
            ".maxclusterrank 8 .blocksareclusters { ret; }\n.entry j() .maxntid 256 { ret; }"
        )
        assert module.entries[0].directives == Directives(
            (128, 1, 1), None, 4, 64, True, (2, 1, 1), 8, blocksareclusters=True
        )
        assert module.entries[1].directives.maxntid == (256, 1, 1)

    def test_a_declared_entry_is_not_listed(self) -> None:
        assert [e.name for e in module_of(".entry j();\n.entry k() { ret; }").entries] == ["k"]

    def test_lines_are_those_of_the_name(self) -> None:
        module = module_of("\n\n.visible .entry k()\n{ ret; }\n.entry\n j() { ret; }")
        assert [e.at.line for e in module.entries] == [6, 9]

    def test_a_misspelt_directive_gets_a_suggestion(self) -> None:
        caught = error(".entry k() .reqntidd 128 { ret; }")
        assert "unknown directive '.reqntidd'" in str(caught)
        assert caught.finding.hint == "did you mean '.reqntid'?"


class TestFunctions:
    def test_returns_params_and_noreturn(self) -> None:
        module = module_of(
            ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"
            ".func (.reg .u32 %r) f (.reg .u32 %x, .param .align 8 .b8 s[16]) { ret; }\n"
            ".extern .func __assertfail (.param .b64 a) .noreturn;\n.weak .func g { ret; }"
        )
        vprintf, f, fail, g = module.functions
        assert (vprintf.linking, vprintf.body, len(vprintf.params)) == ("extern", None, 2)
        assert (f.returns[0].space, f.params[1].size) == (Space.REG, 16)
        assert fail.directives.noreturn
        assert g.body is not None

    def test_aliases(self) -> None:
        assert module_of(".func g { ret; }\n.alias f, g;").aliases == {"f": "g"}


class TestVariables:
    def test_initialisers(self) -> None:
        module = module_of(
            ".global .u32 a[4] = {1, -2, 0x3};\n.const .f32 f = 0f3F800000;\n.global .f64 d = 1;\n"
            ".global .u64 t[2] = {generic(a)+4, k};\n.global .b8 m[2][2] = {{1,2},{3,4}};\n"
            ".global .u8 b[2] = {0xff(a), 0xff00(a)};\n.global .b8 s[] = {1,2,3};"
        )
        by_name = {v.name: v for v in module.variables}
        assert by_name["a"].init == (1, -2, 3)
        assert by_name["f"].init == 0x3F800000
        assert by_name["d"].init == 0x3FF0000000000000
        assert by_name["t"].init == (SymbolInit("a", 4, generic=True), SymbolInit("k"))
        assert by_name["m"].init == ((1, 2), (3, 4))
        assert by_name["b"].init == (SymbolInit("a", mask=0xFF), SymbolInit("a", mask=0xFF00))
        assert by_name["s"].dims == (3,)

    def test_attributes_linking_vectors(self) -> None:
        module = module_of(
            ".visible .global .attribute(.managed) .align 16 .v4 .f32 v;\n.extern .shared .align 16 .b8 dyn[];\n"
            ".common .global .u32 c, d[2];"
        )
        v, dyn, c, d = module.variables
        assert (v.managed, v.align, v.vector, v.size) == (True, 16, 4, 16)
        assert (dyn.linking, dyn.size, dyn.space) == ("extern", 0, Space.SHARED)
        assert (c.linking, d.size) == ("common", 8)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (".shared .u32 a = 1;", "takes no initial value"), (".global .u32 a[2] = {1,2,3};", "holds 2 values"),
            (".global .u32 a[];", "has no size"), (".global .align 3 .u32 a;", "power of two"),
            (".global .u32 a[99999999999999];", "out of range"), (".global .q32 a;", "unknown type '.q32'"),
            (".global .u32 a", "expected ';'"), (".global .u32 a[2] = " + "{" * 200, "nested over"),
        ],
    )  # fmt: skip
    def test_bad_declarations(self, text: str, message: str) -> None:
        assert message in str(error(text))


class TestBodies:
    def test_braces_in_comments_and_strings_do_not_count(self) -> None:
        for body in ("// }\n", "/* } { { */", '.pragma "}";', "{ // {\n }", "mov.b64 {%r1, %r2}, %rd1;"):
            text = "{" + body + "}tail"
            assert find_body_end(text, 0, "/*" in text) == len(text) - 4, body

    def test_a_file_cut_in_a_body_says_which(self) -> None:
        caught = error(".entry k() { add.s32 %r1")
        assert "the body of 'k'" in str(caught)
        assert "the end of the file comes before" in str(caught)

    @pytest.mark.parametrize("keep", range(len(HEAD) + 1, 110, 2))
    def test_any_cut_is_an_error_or_whole(self, keep: int) -> None:
        text = HEAD + '.visible .entry k(.param .u64 p)\n.maxntid 8\n{ .reg .b32 %r<2>; ret; }\n.file 1 "a.cu"\n'
        whole = keep >= len(text) - len('\n.file 1 "a.cu"\n')
        with nullcontext() if whole else pytest.raises(TeenyError, match=r"^t\.ptx:\d+:\d+: "):
            outline(Source("t.ptx", text[:keep]))


def test_sections_and_old_dwarf_are_passed_over() -> None:
    module = module_of(
        "@@DWARF .byte 1\n.section .debug_info {\n.b8 65,115\n.b32 .debug_loc+204\n.b64 $L__tmp3\n}\n"
        ".section .debug_macinfo { }\n.entry k() { ret; }"
    )
    assert [e.name for e in module.entries] == ["k"]


def test_files_are_kept_by_index() -> None:
    assert module_of('.file 1 "a.cu"\n.file 2 "b.h", 123, 456\n').files == {1: "a.cu", 2: "b.h"}


class TestLinearTime:
    """Texts that once took quadratic time; each takes well under a second now, and minutes would show."""

    def test_deep_braces_on_one_line(self) -> None:
        text = "{" * 100_000 + "}" * 100_000
        assert find_body_end(text, 0, has_block_comment=False) == len(text)

    def test_many_statements_on_one_line(self) -> None:
        body = "add.u32 %r1,%r1,%r1; " * 20_000
        module = module_of(f".entry k() {{ .reg .u32 %r<2>; {body} }}")
        assert len(code_of(module, module.entries[0]).ops) == 20_000

    def test_many_names_like_the_misspelt_one(self) -> None:
        names = ",".join(f"r{'x' * 40}{i}" for i in range(20_000))
        with pytest.raises(TeenyError, match="is not declared here"):
            parse_all(module_of(f".entry k() {{ .reg .b32 {names}; mov.b32 r{'x' * 40}y, 1; }}"))

    def test_many_parameters(self) -> None:
        params = ",\n".join(f".param .align 8 .b8 p{i}[8]" for i in range(20_000))
        assert len(module_of(f".entry k({params}) {{ ret; }}").entries[0].params) == 20_000


def test_a_name_of_a_megabyte_is_not_printed_whole() -> None:
    assert len(str(error("." + "x" * 1_000_000))) < 1000
