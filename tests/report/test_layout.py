from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teenycli.report.layout import Column, Excerpt, Fields, Item, Table, lay_out
from teenycli.report.text import length, plain

pytestmark = pytest.mark.unit

TABLE = Table(
    [Column("#", right=True), Column("argument"), Column("size", right=True), Column("value")],
    [["0", "x", "8", "f32[2, 4, 8400], 262.5 KiB, read"], ["10", "n_cols", "4", "1024"], ["11", "empty", "", ""]],
)


def laid(item: Item, width: int | None) -> list[str]:
    return [plain(row) for row in lay_out([item], width)]


def test_a_table_that_fits() -> None:
    assert laid(TABLE, None) == [
        "   #  argument  size  value",
        "   0  x            8  f32[2, 4, 8400], 262.5 KiB, read",
        "  10  n_cols       4  1024",
        "  11  empty",
    ]
    assert laid(TABLE, 54) == laid(TABLE, None)


def test_a_narrower_one_folds_its_last_column() -> None:
    assert laid(TABLE, 48) == [
        "   #  argument  size  value",
        "   0  x            8  f32[2, 4, 8400], 262.5",
        "                      KiB, read",
        "  10  n_cols       4  1024",
        "  11  empty",
    ]


def test_without_room_for_columns_each_row_is_a_block() -> None:
    assert laid(TABLE, 40) == [
        "  0  x",
        "     size 8",
        "     value f32[2, 4, 8400], 262.5 KiB,",
        "       read",
        "  10  n_cols",
        "     size 4   value 1024",
        "  11  empty",
    ]


def test_a_block_headed_by_a_number_alone_says_of_what() -> None:
    table = Table([Column("launch", True), Column("grid"), Column("time")], [["0", "1 x 1 x 1", "2 us"]], heads=1)
    assert laid(table, 24) == ["  launch 0", "     grid 1 x 1 x 1", "     time 2 us"]


def test_an_empty_table_is_its_heading() -> None:
    assert laid(Table([Column("a"), Column("b")], []), 80) == ["  a  b"]


def test_fields() -> None:
    fields = Fields([("grid", "1 x 1 x 1"), ("bandwidth", "49.2 GB/s, 328.2 KiB read"), ("none", "")])
    assert laid(fields, None) == [
        "  grid       1 x 1 x 1",
        "  bandwidth  49.2 GB/s, 328.2 KiB read",
        "  none",
    ]
    assert laid(fields, 30)[1:3] == ["  bandwidth  49.2 GB/s, 328.2", "             KiB read"]
    assert laid(fields, 16)[:2] == ["  grid", "    1 x 1 x 1"]


def test_a_long_line_hangs_two_further_in() -> None:
    assert laid("  a line that is too long", 16) == ["  a line that is", "    too long"]


CELLS = st.text(alphabet="abc x", max_size=30)


@given(
    st.integers(1, 5).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1, max_size=4)),
    st.integers(10, 80),
    st.integers(1, 2),
)
def test_no_width_loses_anything(rows: list[list[str]], width: int, heads: int) -> None:
    titles = [f"T{i}" for i in range(len(rows[0]))]
    table = Table([Column(title, right=i % 2 == 0) for i, title in enumerate(titles)], rows, heads=heads)
    out = laid(table, width)
    assert all(len(row) <= width for row in out)
    for letter in "abcx":
        assert sum(row.count(letter) for row in out) == sum(cell.count(letter) for row in rows for cell in row)


class TestExcerpt:
    def test_the_caret_is_under_its_column(self) -> None:
        assert laid(Excerpt(12, "    add.s32 %r1, %r2;", 5), None) == ["  12 | add.s32 %r1, %r2;", "     | ^"]
        assert laid(Excerpt(7, "\tmov\t%r1", 6), None) == ["  7 | mov %r1", "    |     ^"]

    def test_without_a_column_or_a_number(self) -> None:
        assert laid(Excerpt(0, "exp(x)", 0), None) == ["   | exp(x)"]

    @pytest.mark.parametrize("width", [None, 40, 60, 200])
    @pytest.mark.parametrize("column", [1, 50, 500, 995, 1000])
    def test_of_a_long_line_the_part_around_the_caret(self, width: int | None, column: int) -> None:
        text = "".join(chr(ord("a") + i % 26) for i in range(1000))
        source, caret = laid(Excerpt(3, text, column), width)
        assert max(len(source), len(caret)) <= min(width or 200, 110)
        at = caret.index("^")
        around = source[max(at - 3, 6) : at + 4]
        assert source[at] == text[column - 1]
        assert around.strip(".") in text

    def test_wide_characters_and_escapes_before_the_caret(self) -> None:
        source, caret = laid(Excerpt(1, "中\x1b!", 3), None)
        assert source == r"  1 | 中\x1b!"
        assert caret == "    |       ^"
        assert length(tuple(next(iter(lay_out([Excerpt(1, "中\x1b!", 3)], None))))) == 6 + 2 + 4 + 1

    def test_a_column_past_the_end(self) -> None:
        assert laid(Excerpt(1, "abc", 10), None)[1].endswith("^")
