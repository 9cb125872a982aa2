from __future__ import annotations

import pytest

from teenycli.errors import TeenyError
from teenycli.manifest.arguments import KINDS, parse_argument, split_top

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("bytes", "tensormap")])
def test_kinds_take_an_expression(kind: str) -> None:
    arg = parse_argument(f" {kind}\tN +  1 ")
    assert (arg.kind, arg.text, arg.label) == (kind, "N +  1", "N +  1")
    assert arg.value is not None
    assert arg.value.names == {"N"}


def test_kinds_that_take_no_expression() -> None:
    for text in ("bytes @dir/a file.bin", "bytes 00ff", "tensormap d"):
        arg = parse_argument(text)
        assert arg.value is None
        assert text == f"{arg.kind} {arg.text}"


def test_structs_are_split_at_their_own_commas() -> None:
    arg = parse_argument("{ptr x, i32 max(N, 2), {f32 alpha, u8 (1, 2)[0]}}", "s")
    assert arg.kind == "struct"
    assert arg.label == "s"
    assert [member.kind for member in arg.members] == ["ptr", "i32", "struct"]
    assert [member.text for member in arg.members[2].members] == ["alpha", "(1, 2)[0]"]
    assert {name for expression in arg.expressions() for name in expression.names} == {"x", "N", "alpha"}


@pytest.mark.parametrize(
    ("text", "id", "words"),
    [
        ("", "bad-argument", "empty"),
        ("ptr", "bad-argument", "no value"),
        ("int N", "unknown-kind", "did you mean 'i32'?"),
        ("i23 N", "unknown-kind", "did you mean 'i32'?"),
        ("float4 v", "unknown-kind", "f32"),
        ("e4m3 x", "unknown-kind", "kinds are"),
        ("N", "unknown-kind", "KIND EXPR"),
        ("i32 N +", "expression-syntax", "N +"),
        ("{ptr x", "bad-argument", "closing brace"),
        ("{}", "bad-argument", "empty"),
        ("{ptr x,}", "bad-argument", "empty"),
        ("{ptr x} y}", "bad-argument", "pair"),
        ("{i32 (1}", "bad-argument", "pair"),
        ("{bytes @f.bin}", "bad-argument", "on its own"),
        ("{" * 60 + "i32 1" + "}" * 60, "bad-argument", "too deeply"),
        ("{" + "i32 1," * 2000 + "i32 1}", "bad-argument", "too long"),
    ],
)
def test_errors(text: str, id: str, words: str) -> None:
    with pytest.raises(TeenyError) as caught:
        parse_argument(text)
    finding = caught.value.finding
    assert finding.id == id
    assert words in f"{finding.message} {finding.hint}"


def test_splitting() -> None:
    assert list(split_top("a, f(b, c), [d, {e, f}]")) == ["a", " f(b, c)", " [d, {e, f}]"]
    assert list(split_top("")) == [""]
