"""Lines of styled text, and how they fold. Knows nothing of what they say, nor of where they go.

A style is a word for a role (``name``, ``dim``, ``bad``); what it looks like is the console's affair. Imports
nothing of ours.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from msgspec import Struct


class Span(Struct, frozen=True):
    """Text of one style; the empty style is plain."""

    text: str
    style: str = ""


#: One line, without its newline.
Line = tuple[Span, ...]


def line(*parts: str | Span | Line) -> Line:
    """A line from text, spans and other lines, one after another; neighbours of one style become one span."""
    spans: list[Span] = []
    for part in parts:
        for span in part if isinstance(part, tuple) else (Span(part) if isinstance(part, str) else part,):
            if spans and spans[-1].style == span.style:
                spans[-1] = Span(spans[-1].text + span.text, span.style)
            elif span.text:
                spans.append(span)
    return tuple(spans)


def plain(spans: Line) -> str:
    """The text of a line."""
    return "".join(span.text for span in spans)


def visible(text: str) -> str:
    r"""``text`` with everything that could move a cursor, colour a terminal or hide written out as ``\x1b``.

    Names and source lines come from files that anybody may have made.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def cells(text: str) -> int:
    """How many columns of a terminal ``text`` takes."""
    return len(text) if text.isascii() else sum(map(_cell, text))


def _cell(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def length(spans: Line) -> int:
    """How many columns of a terminal a line takes."""
    return sum(cells(span.text) for span in spans)


def padded(spans: Line, width: int, right: bool = False) -> Line:
    """``spans`` filled up with blanks to ``width``, on the left when ``right`` is asked for."""
    blanks = " " * (width - length(spans))
    return line(blanks, spans) if right else line(spans, blanks)


def fold(spans: Line, width: int, hanging: int = 0) -> list[Line]:
    """``spans`` on as many lines of at most ``width`` columns as it takes, broken at blanks where that is possible.

    Lines after the first begin with ``hanging`` blanks. Nothing but blanks at a break is dropped.
    """
    width = max(width, 2)  # one wide character
    if width - hanging < max(width // 2, 2):
        hanging = 0
    rows: list[list[Span]] = [[]]
    used, room = 0, width
    for word in _words(spans):
        if used and used + length(word) > room:
            rows.append([])
            used, room = 0, width - hanging
            if not plain(word).strip(" "):
                continue
        for char in _characters(word):
            if used + cells(char.text) > room:
                rows.append([])
                used, room = 0, width - hanging
            rows[-1].append(char)
            used += cells(char.text)
    first, *rest = (trimmed(line(*row)) for row in rows)
    return [first, *(line(" " * hanging, row) for row in rest)]


def trimmed(spans: Line) -> Line:
    """``spans`` without blanks at the end."""
    *before, last = spans or (Span(""),)
    text = last.text.rstrip(" ")
    return (*before, Span(text, last.style)) if text else trimmed(tuple(before)) if before else ()


def _words(spans: Line) -> Iterator[Line]:
    """Runs of blanks and runs of anything else, which may go over several spans."""
    word: list[Span] = []
    for char in _characters(spans):
        if word and (char.text == " ") is not (word[-1].text == " "):
            yield line(*word)
            word = []
        word.append(char)
    if word:
        yield line(*word)


def _characters(spans: Line) -> Iterator[Span]:
    return (Span(char, span.style) for span in spans for char in span.text)
