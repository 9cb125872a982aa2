from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teenycli.ptx.strip import strip_debug

pytestmark = pytest.mark.unit

CORPUS = Path(__file__).parents[1] / "corpus"

#: As nvcc -G prints it, shortened: a .loc names a label that only .debug_str has.
DEBUGGED = """\
.version 8.0
.target sm_80, debug
.address_size 64
\t.file\t1 "/home/me/a b//k.cu", 1700000000, 4096
.visible .entry k(
\t.param .u64 k_param_0
)
{
\t.reg .b32 \t%r<3>;
\t.loc\t1 2 0
$L__func_begin0:
\t.loc\t1 2 7
\tmov.u32 %r1, 1;
\t.loc\t1 9 3, function_name $L__info_string0, inlined_at 1 2 7
\tmov.u32 %r2, 2;
\tret;
$L__func_end0:
}
\t.section\t.debug_abbrev
\t{
.b8 1 // } not the end
.b8 17 /* nor } here */
\t}
\t.section\t.debug_info
\t{
.b32 .debug_abbrev
.b64 $L__func_begin0
\t}
\t.section\t.debug_str
\t{
$L__info_string0:
.b8 107
.b8 0

\t}
"""


def lines(text: str) -> list[str]:
    """The lines, blank-trimmed: what a JIT counts."""
    return [line.strip() for line in text.split("\n")]


def test_all_that_speaks_to_a_debugger_goes_and_the_rest_keeps_its_line() -> None:
    before, after = lines(DEBUGGED), lines(strip_debug(DEBUGGED))
    assert len(before) == len(after)
    assert after[1] == ".target sm_80"
    kept = {".version 8.0", ".address_size 64", "mov.u32 %r1, 1;", "mov.u32 %r2, 2;", "ret;", "$L__func_begin0:"}
    for old, new in zip(before, after, strict=True):
        if old in kept:
            assert new == old
    assert not any(word in "\n".join(after) for word in (".loc", ".file", ".section", "debug", ".b8", "inlined_at"))
    assert after[-1] == before[-1] == ""


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is not on PATH")
def test_ptxas_takes_what_is_left(tmp_path: Path) -> None:
    target = tmp_path / "k.ptx"
    target.write_text(strip_debug(DEBUGGED))
    done = subprocess.run(["ptxas", "-arch=sm_80", str(target), "-o", str(tmp_path / "k.cubin")], capture_output=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mov.u32 %r1, 5; .loc 1 2 3 mov.u32 %r2, 6;", "mov.u32 %r1, 5;   mov.u32 %r2, 6;"),
        (".loc 1\n 2\n\n3 ret;", "\n\n\n ret;"),
        (".loc /* in */ 1 2 // of\n3\nret;", "\n\nret;"),
        ("{.loc 1 2 3\n}", "{ \n}"),
        (".loc 1 2 3, function_name $a+12, inlined_at 1 2 3\nret;", " \nret;"),
        (".loc 1 2 3, inlined_at 1 2 3, function_name .debug_str\nret;", " \nret;"),
        ('.file 1 "a\\b.cu"\nret;', " \nret;"),
        ('.file 1\t"x" , 12, 0x9\nret;', " \nret;"),
        (".target sm_90a, texmode_independent, debug\n", ".target sm_90a, texmode_independent \n"),
        (".target sm_90a,debug,texmode_unified\n", ".target sm_90a ,texmode_unified\n"),
        (".target sm_80 ,\n debug\nret;", ".target sm_80\n\nret;"),
        ("@@DWARF .section .debug_info\n@@DWARF .byte 1\nret;", " \n \nret;"),
        (".section .debug_x {}ret;", " ret;"),
        ("a\r\n.loc 1 2 3\r\nb\r\n", "a\r\n \r\nb\r\n"),
    ],
)
def test_forms(text: str, expected: str) -> None:
    assert strip_debug(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        '// .loc 1 2 3 and .file 1 "x"\n',
        "/* .section .debug_info { .b8 1 }\n.loc 1 2 3 */ ret;",
        '.pragma ".loc 1 2 3";\n',
        '# 1 ".loc 1 2 3"\n',
        "ld.local.u32 %r1, [%rd1]; st.local.b8 [%SP], %r1; .local .align 8 .b8 d[8];",
        ".target sm_80\n.global .u32 debug;\n",
        ".locality 1 2 3",
        ".loc 1 2;",
        ".loc 1 2.5 3;",
        ".section .debug_info",
        ".section .debug_info { .b8 1",
        '.file "x"',
        "",
    ],
)
def test_left_alone(text: str) -> None:
    assert strip_debug(text) == text


def test_a_comment_left_open_hides_all_that_follows() -> None:
    assert strip_debug(".loc 1 2 3\n/* .loc 1 2 3\n") == " \n/* .loc 1 2 3\n"


def test_a_string_in_a_section_may_hold_its_brace() -> None:
    assert strip_debug('.section .debug_str { .b8 "}" }\nret;') == " \nret;"


WORDS = st.sampled_from(
    [".loc 1 2 3", ".loc", ".file 1 \"a\"", ".section .debug_str {", "}", "{", "\n", "//", "/*", "*/", '"', ", debug",
     ".target sm_80", "@@DWARF x", "ret;", " ", "#", ", inlined_at 1 2 3"]
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(WORDS, max_size=30).map("".join))
def test_lines_never_shift(text: str) -> None:
    once = strip_debug(text)
    assert once.count("\n") == text.count("\n")
    assert strip_debug(once).count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "hostile",
    [
        "/*" * 200_000 + ".loc 1 2 3",
        ".section a {" * 50_000,
        '.section a { "' * 50_000,
        ".section a { /* " * 50_000,
        (".loc" + " " * 1000) * 500,
        ".target a, " * 50_000 + "debug",
        ".loc 1 2 3, function_name " * 30_000,
    ],
)
def test_no_text_takes_more_than_linear_time(hostile: str) -> None:
    began = time.perf_counter()
    strip_debug(hostile)
    assert time.perf_counter() - began < 2


@pytest.mark.parametrize("path", sorted(CORPUS.rglob("*.ptx")), ids=lambda path: path.name)
def test_corpus(path: Path) -> None:
    text = path.read_text(encoding="latin-1")
    stripped = strip_debug(text)
    assert stripped.count("\n") == text.count("\n")
    if not any(word in text for word in (".loc\t", ".loc ", ".file", ".section", "debug")):
        assert stripped == text
    code = [line for line in lines(text) if line.endswith(";") and not line.startswith((".loc", "//"))]
    left = set(lines(stripped))
    assert all(line in left for line in code)
