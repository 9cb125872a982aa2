"""Sections of debugging information: read to be sure that they are well formed, and for nothing else.

PTX ISA, "Debugging Directives: .section". May import ``ptx.lexer`` and ``ptx.model``.
"""

from __future__ import annotations

import re

from teenycli.ptx.lexer import Cursor
from teenycli.ptx.model import BodyText, Module

_WIDTHS = {".b8": 8, ".b16": 16, ".b32": 32, ".b64": 64}


_FUNCTION_NAME = re.compile(r"\.loc\b[^\n/]*\bfunction_name\s+([A-Za-z_$%][\w$]*)")


def check_sections(module: Module) -> None:
    """Parse every section, and find the labels that ``.loc`` names. Raises "syntax" as the rest of the reader does."""
    labels: set[str] = set()
    for section in module.sections:
        labels |= _section(Cursor(module.source, section.start, section.line), section)
    for match in _FUNCTION_NAME.finditer(module.source.text):
        if match[1] not in labels:
            Cursor(module.source).fail_at(match.start(1), f"the label '{match[1]}' is in no section", id="undeclared")


def _section(cursor: Cursor, section: BodyText) -> set[str]:
    """Parse one section; returns its labels."""
    labels: set[str] = set()
    cursor.expect("{")
    while not cursor.at("}"):
        token = cursor.token
        if token.kind == "ID":
            cursor.advance()
            cursor.expect(":", "the label")
            labels.add(token.text)
        elif token.text in _WIDTHS:
            cursor.advance()
            _values(cursor, _WIDTHS[token.text])
        elif token.kind == "DOT":
            cursor.fail_unknown("data directive", token, _WIDTHS)
        else:
            cursor.fail("a label, .b8, .b16, .b32, .b64 or '}'")
    if cursor.token.start != section.end - 1:
        cursor.fail("the end of the section")
    return labels


def _values(cursor: Cursor, width: int) -> None:
    _value(cursor, width)
    while cursor.take(","):
        _value(cursor, width)


def _value(cursor: Cursor, width: int) -> None:
    """A number that fits ``width`` bits; or, in 32 or 64, a label or section with an offset, or labels' distance."""
    start = cursor.token.start
    if cursor.token.kind == "INT" or cursor.at("-"):
        sign = -1 if cursor.take("-") else 1
        text = cursor.expect_kind("INT", "a number").text.rstrip("U")
        if len(text) > 70:
            cursor.fail_at(start, f"a number of {len(text)} digits does not fit {width} bits")
        value = sign * int(text, 8 if text.isdecimal() and len(text) > 1 and text[0] == "0" else 0)
        if not -(1 << width - 1) <= value < 1 << width:
            cursor.fail_at(start, f"{value} does not fit {width} bits")
        return
    if width < 32 or cursor.token.kind not in ("ID", "DOT"):
        cursor.fail("a number" if width < 32 else "a number, a label or a section")
    cursor.advance()
    if cursor.take("+"):
        cursor.expect_kind("INT", "an offset")
    elif cursor.take("-"):
        if cursor.token.kind not in ("ID", "DOT", "INT"):
            cursor.fail("a label")
        cursor.advance()
