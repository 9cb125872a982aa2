"""Pages of lines and tables, laid out for a width: as a table, with its last column folded, or a block for each row.

Where a table does not fit, nothing is cut. Where the width is unlimited, as in a pipe, nothing is folded either.
rich's own tables cut or squeeze every column and take milliseconds each, too long for files of hundreds of entries;
rich puts the colours on what is laid out here.

May import ``report.text``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from teenycli.report.text import Line, Span, cells, fold, length, line, padded, plain, trimmed, visible

Cell = str | Span | Line

#: Blanks between columns, and between the fields of a block; the narrowest that a folded last column may be.
_GAP = 2
_BETWEEN = 3
_NARROWEST = 24
#: Most columns of a source line that are shown, since lines of 10,000 characters occur, and what stands for the rest.
_EXCERPT = 100
_REST = "..."


class Column(Struct, frozen=True):
    """A heading, and whether its cells are numbers, which end together."""

    title: str
    right: bool = False


class Table(Struct, frozen=True):
    """Rows under columns. Without room for columns, the first ``heads`` cells of a row become the title of a block."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    indent: int = 2
    heads: int = 2


class Fields(Struct, frozen=True):
    """Names and what they stand for, side by side: a table of two columns without a heading."""

    rows: Sequence[tuple[str, Cell]]
    indent: int = 2


class Excerpt(Struct, frozen=True):
    """A line of a file with its number (0 is unknown), and a caret under ``column`` of it, from 1 (0 is none)."""

    number: int
    text: str
    column: int = 0
    indent: int = 2


class Prose(Struct, frozen=True):
    """A paragraph, each of its lines ``indent`` blanks in."""

    text: Cell
    indent: int = 2


Item = str | Line | Table | Fields | Excerpt | Prose
Page = Iterable[Item]


def lay_out(page: Page, width: int | None) -> Iterator[Line]:
    """The lines of ``page`` in a terminal ``width`` columns wide; None is no limit."""
    for item in page:
        if isinstance(item, Table):
            yield from _table(item, width)
        elif isinstance(item, Fields):
            yield from _fields(item, width)
        elif isinstance(item, Excerpt):
            yield from _excerpt(item, width)
        elif isinstance(item, Prose):
            spans, margin = _spans(item.text), " " * item.indent
            rows = [spans] if width is None else fold(spans, width - item.indent)
            yield from (line(margin, row) for row in rows)
        else:
            spans = _spans(item)
            yield from [spans] if width is None or length(spans) <= width else _hanging(spans, width)


def _spans(cell: Cell) -> Line:
    return line(cell)


def _hanging(spans: Line, width: int) -> list[Line]:
    """A long line folded, what follows the first two blanks further in than the first begins."""
    text = plain(spans)
    return fold(spans, width, len(text) - len(text.lstrip()) + 2)


def _fields(fields: Fields, width: int | None) -> Iterator[Line]:
    if not fields.rows:
        return
    labels = max(len(name) for name, _ in fields.rows)
    left = fields.indent + labels + _GAP
    for name, cell in fields.rows:
        label, value = line(" " * fields.indent, Span(name, "label")), _spans(cell)
        whole = line(padded(label, left), value)
        if not value:
            yield label
        elif width is None or length(whole) <= width:
            yield whole
        elif width - left < _NARROWEST // 2:
            yield label
            yield from (line(" " * (fields.indent + 2), part) for part in fold(value, width - fields.indent - 2))
        else:
            first, *rest = fold(value, width - left)
            yield line(padded(label, left), first)
            yield from (line(" " * left, part) for part in rest)


def _table(table: Table, width: int | None) -> Iterator[Line]:
    cells = [[_spans(cell) for cell in row] for row in table.rows]
    titles = [line(Span(column.title, "label")) for column in table.columns]
    shown = [titles, *cells]
    widths = [max(length(row[i]) for row in shown) for i in range(len(titles))]
    fixed = table.indent + sum(widths[:-1]) + _GAP * (len(widths) - 1)
    if width is None or fixed + widths[-1] <= width:
        last = None
    elif width - fixed >= _NARROWEST:
        last = width - fixed
    else:
        yield from _blocks(table, cells, width)
        return
    for row in shown:
        yield from _row(table, row, widths, fixed, last)


def _row(table: Table, row: list[Line], widths: list[int], fixed: int, last: int | None) -> Iterator[Line]:
    """One row; its last cell folded to ``last`` columns, which begin at column ``fixed``."""
    filled = [
        padded(cell, width, column.right) if column.right or place < len(row) - 1 else cell
        for place, (column, cell, width) in enumerate(zip(table.columns, row, widths, strict=True))
    ]
    first, *rest = [filled[-1]] if last is None else fold(row[-1], last)
    gap = " " * _GAP
    yield trimmed(line(" " * table.indent, *(part for cell in filled[:-1] for part in (cell, gap)), first))
    yield from (line(" " * fixed, part) for part in rest)


def _blocks(table: Table, cells: list[list[Line]], width: int) -> Iterator[Line]:
    """A block for each row: a title, and under it the other cells that say something, with their headings."""
    titles = [column.title for column in table.columns]
    indent = " " * (table.indent + 3)
    for row in cells:
        named = table.heads == 1
        title = line(Span(f"{titles[0]} ", "label") if named else "", *_spaced(row[: table.heads]))
        yield from fold(line(" " * table.indent, title), width, table.indent + 2)
        parts = [line(Span(f"{t} ", "label"), cell) for t, cell in zip(titles, row, strict=True) if cell]
        parts = parts[sum(1 for cell in row[: table.heads] if cell) :]
        current: Line = ()
        for part in parts:
            together = line(current, " " * _BETWEEN if current else "", part)
            if current and len(indent) + length(together) > width:
                yield from fold(line(indent, current), width, len(indent) + 2)
                together = part
            current = together
        if current:
            yield from fold(line(indent, current), width, len(indent) + 2)


def _spaced(cells: Sequence[Line]) -> Iterator[Line]:
    """The cells that say something, with a gap between."""
    for index, cell in enumerate(cell for cell in cells if cell):
        yield line(" " * _GAP if index else "", cell)


def _excerpt(excerpt: Excerpt, width: int | None) -> Iterator[Line]:
    """The line, or the part of it around the caret: a folded one would lose what the caret points at."""
    margin = f"{excerpt.number or ''} | "
    before = visible(excerpt.text[: max(excerpt.column - 1, 0)].expandtabs(4))
    text = visible(excerpt.text.rstrip().expandtabs(4))
    room = min(_EXCERPT, (width or _EXCERPT * 2) - excerpt.indent - len(margin))
    room = max(room, 2 * len(_REST) + 1)
    start = len(text) - len(text.lstrip())
    if excerpt.column:
        start = min(start, len(before))
        if len(text) - start > room:
            start = max(start, len(before) - room // 2)
    shown, lead = text[start:], before[start:]
    if start and text[:start].strip():
        shown, lead = _REST + shown[len(_REST) :], _REST + lead[len(_REST) :]
    if cells(shown) > room:
        shown = shown[: room - len(_REST)] + _REST
    indent = " " * excerpt.indent
    yield line(indent, Span(margin, "dim"), shown)
    if excerpt.column:
        yield line(indent, Span("| ".rjust(len(margin)), "dim"), " " * cells(lead), Span("^", "bad"))
