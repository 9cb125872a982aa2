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
