from __future__ import annotations

import pytest

from teenycli.ptx.search import shared_dynamic, shared_static
from tests.ptx.text import module_of

pytestmark = pytest.mark.unit


def shared(text: str) -> tuple[int, bool]:
    module = module_of(text)
    entry = module.entries[0]
    return shared_static(module, entry), shared_dynamic(module, entry)


def test_variables_in_the_body_at_their_alignment() -> None:
    assert shared(".entry k() { .shared .b8 a[3]; .shared .align 16 .b8 b[8]; ret; }") == (24, False)


def test_module_variables_count_when_mentioned() -> None:
    text = ".shared .align 4 .b8 used[100]; .shared .b8 other[7];\n.entry k() { mov.u32 %r1, used; ret; }"
    assert shared(text) == (100, False)


def test_extern_without_a_size_is_dynamic() -> None:
    assert shared(".extern .shared .align 16 .b8 smem[];\n.entry k() { mov.u32 %r1, smem; ret; }") == (0, True)
    assert shared(".extern .shared .align 16 .b8 smem[];\n.entry k() { ret; }") == (0, False)
    assert shared(".entry k() { .extern .shared .b8 smem[]; ret; }") == (0, True)


def test_functions_that_are_called_bring_theirs() -> None:
    text = (
        ".func f() { .shared .b32 s[4]; ret; }\n.func g() { call f; ret; }\n.func h() { .shared .b32 s[9]; ret; }\n"
        ".entry k() { call g; ret; }"
    )
    assert shared(text) == (16, False)


@pytest.mark.parametrize("line", ["// .shared .b32 a[4];", "/* .shared .b32 a[4]; */", "ld.shared .u32 %r1,[a];",
                                  "isspacep.shared %p1, %rd1;"])  # fmt: skip
def test_what_is_no_declaration(line: str) -> None:
    assert shared(f".entry k() {{ {line}\n ret; }}") == (0, False)


def test_odd_blanks() -> None:
    assert shared(".entry k() {.shared\n.align\t8 .b8 a[8];.shared/**/.b8 b[8];.extern  .shared\t.b8 c[]; ret; }") == (
        16,
        True,
    )


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (".entry k() { .shared.b8 s[64]; ret; }", 64),
        (".entry k() { .shared.align 4 .b8 s[64]; ret; }", 64),
        (".entry k() {\n// see /* here\n.shared .align 4 .b8 s[64]; ret; }", 64),
        (".shared .b8 s[64];\n.entry k() {\n// see /* here\nmov.u32 %r1, s; ret; }", 64),
        (".entry k() { /* // */ .shared .align 4 .b8 s[64]; ret; }", 64),
        ('.shared .b8 s[64];\n.entry k() { .pragma "a//b"; mov.u32 %r1, s; ret; }', 64),
        (".entry k() { { .shared .b8 s[64]; } { .shared .b8 s[128]; } ret; }", 192),
        (".func f() { .shared .b8 s[64]; ret; }\n.func al();\n.alias al, f;\n.entry k() { call al; ret; }", 64),
        (".func f() { .shared .b8 s[64]; }\n.global .u64 t = f, u = t;\n.entry k() { mov.u64 %rd1, u; }", 64),
        ('.entry k() { .pragma ".shared .align 4 .b8 zz[4];"; .shared .align 4 .b8 s[64]; ret; }', 64),
        (".entry k() { ld .shared .u32 %r1, [%r2]; ret; }", 0),
    ],
)  # fmt: skip
def test_what_ptxas_counts(text: str, size: int) -> None:
    assert shared(text) == (size, False)


def test_long_chains_of_functions_take_linear_time() -> None:
    count = 3000
    chain = "".join(f".func f{i}() {{ call f{i + 1}; ret; }}\n" for i in range(count))
    text = chain + f".func f{count}() {{ .shared .b8 s[8]; ret; }}\n.entry k() {{ call f0; ret; }}"
    assert shared(text) == (8, False)
