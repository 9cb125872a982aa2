from __future__ import annotations

import pytest

from teenycli.errors import TeenyError
from teenycli.ptx.lexer import Cursor
from teenycli.ptx.model import Source

pytestmark = pytest.mark.unit


def tokens(text: str) -> list[tuple[str, str]]:
    cursor = Cursor(Source("t.ptx", text))
    found = []
    while cursor.token.kind != "END":
        token = cursor.advance()
        found.append((token.kind, token.text))
    return found


def error(text: str) -> TeenyError:
    with pytest.raises(TeenyError) as caught:
        tokens(text)
    return caught.value


def test_identifiers_take_dollar_underscore_and_percent() -> None:
    assert tokens("%r1 $L__BB0_1 _Z3foo a$b") == [("ID", t) for t in ("%r1", "$L__BB0_1", "_Z3foo", "a$b")]


def test_a_lone_underscore_is_the_sink() -> None:
    assert tokens("_|%p") == [("SINK", "_"), ("PUNCT", "|"), ("ID", "%p")]


def test_dotted_words_keep_their_double_colons() -> None:
    assert tokens(".shared::cta .b32") == [("DOT", ".shared::cta"), ("DOT", ".b32")]


@pytest.mark.parametrize("text", ["0x1F", "0X1fU", "017", "0b101", "12U", "0"])
def test_integers(text: str) -> None:
    assert tokens(text) == [("INT", text)]


@pytest.mark.parametrize("text", ["0f3F800000", "0d3FF0000000000000", "1.5", "1.", ".5", "1e5", "2.5E-3"])
def test_floats(text: str) -> None:
    assert tokens(text) == [("FLOAT", text)]


@pytest.mark.parametrize("text", ["08", "0f3F8", "12abc", "0x", "0b2"])
def test_what_only_begins_like_a_number_is_named(text: str) -> None:
    assert f"'{text}' is no number" in str(error(f"\n  {text};"))


def test_comments_and_preprocessor_lines_are_blanks() -> None:
    assert tokens('a // b\n/* c\n** d */ e\n# 1 "x.c"\nf') == [("ID", "a"), ("ID", "e"), ("ID", "f")]


def test_places_count_lines_and_columns_from_one_across_crlf() -> None:
    caught = error("ab\r\n  `")
    assert caught.finding.where is not None
    assert (caught.finding.where.line, caught.finding.where.column, caught.finding.where.text) == (2, 3, "  `")


def test_an_open_comment_is_named_where_it_opens() -> None:
    caught = error("a\n /* b\n c")
    assert "never closed" in str(caught)
    assert "t.ptx:2:2" in str(caught)


def test_an_open_string_is_named() -> None:
    assert "not closed on its line" in str(error('.pragma "x\n;'))


def test_a_nul_byte_inside_is_a_bad_character() -> None:
    assert r"'\x00' begins no token" in str(error("a \0 b"))


def test_modifiers_may_be_spaced_and_commented() -> None:
    cursor = Cursor(Source("t.ptx", "ld /* .x */ .global\n.L1::evict_last .1d .v4.f32 %f1"))
    cursor.advance()
    assert cursor.modifiers() == ("global", "L1::evict_last", "1d", "v4", "f32")
    assert cursor.token.text == "%f1"
