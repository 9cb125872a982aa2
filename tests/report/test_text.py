from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teenycli.report.text import Line, Span, cells, fold, length, line, padded, plain, trimmed, visible

pytestmark = pytest.mark.unit

TEXT = st.text(alphabet="ab  \u4e2d-", max_size=60)
LINES = st.lists(st.builds(Span, TEXT, st.sampled_from(["", "bad", "dim"])), max_size=4).map(lambda spans: line(*spans))


def test_neighbours_of_one_style_become_one_span() -> None:
    assert line("a", Span("b"), line(Span("c", "bad")), Span("d", "bad"), "") == (Span("ab"), Span("cd", "bad"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("_Z3fooPi<int>[0]", "_Z3fooPi<int>[0]"),
        ("größe", "größe"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\rb\tc\nd", r"a\rb\tc\nd"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\udc80", r"\udc80"),
        ("\x9b2J", r"\x9b2J"),
    ],
)
def test_what_could_steer_a_terminal_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_cells_counts_columns_of_a_terminal() -> None:
    assert cells("abc") == 3
    assert cells("中文") == 4
    assert cells("e\u0301") == 1


def test_padding() -> None:
    assert plain(padded(line("ab"), 4)) == "ab  "
    assert plain(padded(line("ab"), 4, right=True)) == "  ab"
    assert plain(padded(line("abcde"), 4)) == "abcde"


def folded(text: str, width: int, hanging: int = 0) -> list[str]:
    return [plain(row) for row in fold(line(text), width, hanging)]


def test_folding_breaks_at_blanks() -> None:
    assert folded("one two three", 8) == ["one two", "three"]
    assert folded("  one two three", 8, hanging=4) == ["  one", "    two", "    thre", "    e"]
    assert folded("", 8) == [""]


def test_a_long_word_is_broken() -> None:
    assert folded("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    assert folded("x abcdefghij", 4) == ["x", "abcd", "efgh", "ij"]


def test_styles_survive_folding() -> None:
    rows = fold(line("one ", Span("two three", "bad")), 8)
    assert rows == [(Span("one "), Span("two", "bad")), (Span("three", "bad"),)]


@given(LINES, st.integers(2, 30), st.integers(0, 10))
def test_nothing_but_blanks_is_lost_and_nothing_is_too_wide(spans: Line, width: int, hanging: int) -> None:
    rows = fold(spans, width, hanging)
    assert "".join(map(plain, rows)).replace(" ", "") == plain(spans).replace(" ", "")
    assert all(length(row) <= width for row in rows)


@given(LINES)
def test_trimming(spans: Line) -> None:
    assert plain(trimmed(spans)) == plain(spans).rstrip(" ")
