"""PTX text to tokens, one at a time, with the place of each (PTX ISA, "Syntax").

The rules are rows of one regular expression; what no token begins with has rows of its own, so that a bad
character, a comment and a string left open each get their own words. A :class:`Cursor` reads tokens on demand and
can be moved, so that the outline of a module never tokenises a body.

May import ``errors`` and ``ptx.model``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, NoReturn

from teenycli.errors import Place, TeenyError, did_you_mean
from teenycli.ptx.model import Position, Source

#: Blanks, comments, and lines that begin with ``#`` (what a preprocessor leaves; ptxas passes over them).
SKIP = r"(?:[ \t\r\n\f\v]+|//[^\n]*|/\*(?:[^*]|\*(?!/))*+\*/|(?<![^\n])#[^\n]*)*+"

#: Kind of token and its pattern, in order of precedence.
_ROWS = (
    ("ID", r"[A-Za-z][\w$]*|[_$%][\w$]+"),
    ("DOT", r"\.[A-Za-z_][\w$]*(?:::[\w$]+)*"),
    ("FLOAT", r"0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b|(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+"),
    ("INT", r"(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)U?\b"),
    ("STRING", r'"[^"\n]*"'),
    ("OPEN_COMMENT", r"/\*"),
    ("OPEN_STRING", r'"'),
    ("PUNCT", r"<<|>>|<=|>=|==|!=|&&|\|\||@@|[{}()\[\],;:|!@<>=+\-*/%&^~?]"),
    ("SINK", r"_"),
    ("BAD_NUMBER", r"\d[\w$]*"),
    ("END", r"\Z"),
    ("BAD", r"."),
)
_TOKEN = re.compile(SKIP + "(?:" + "|".join(f"(?P<{kind}>{row})" for kind, row in _ROWS) + ")", re.ASCII | re.DOTALL)
_MODIFIERS = re.compile(rf"(?:{SKIP}\.[A-Za-z0-9_]+(?:::[A-Za-z0-9_]+)*)*+", re.ASCII)
_MODIFIER = re.compile(r"\.([A-Za-z0-9_]+(?:::[A-Za-z0-9_]+)*)", re.ASCII)

_LEXICAL_ERRORS = {
    "OPEN_COMMENT": "this comment is never closed",
    "OPEN_STRING": "this string is not closed on its line",
    "BAD_NUMBER": "'{0}' is no number",
    "BAD": "{0!a} begins no token of PTX",
}


class Token(NamedTuple):
    """A token: its kind (a row's name), its text, and where it begins in the source."""

    kind: str
    text: str
    start: int

    @property
    def words(self) -> str:
        """How a message calls it."""
        return "the end of the file" if self.kind == "END" else f"'{self.text}'"


class Cursor:
    """Reads tokens of ``source`` from ``start`` on.

    ``token`` is the one under the cursor. Every ``expect`` and ``take`` moves on; ``fail`` never returns.
    """

    def __init__(self, source: Source, start: int = 0, line: int = 1) -> None:
        self.source = source
        self.text = source.text
        #: Where newlines have been counted to, the line there and where it begins: positions mostly come in ascending
        #: order.
        self._origin = self._counted = (start, line, self.text.rfind("\n", 0, start) + 1)
        self.end_of_last = start
        self.token = self._lex(start)

    def _lex(self, start: int) -> Token:
        match = _TOKEN.match(self.text, start)
        assert match is not None
        kind = match.lastgroup
        assert kind is not None
        begin, self._next = match.span(kind)
        token = Token(kind, self.text[begin : self._next], begin)
        if kind in _LEXICAL_ERRORS:
            self.token = token
            self.fail_at(token.start, _LEXICAL_ERRORS[kind].format(token.text))
        return token

    def advance(self) -> Token:
        """Move on; returns the token that was under the cursor."""
        token = self.token
        self.end_of_last = self._next
        self.token = self._lex(self._next)
        return token

    def jump(self, offset: int) -> None:
        """Move to ``offset``, which must lie between tokens."""
        self.end_of_last = offset
        self.token = self._lex(offset)

    def modifiers(self) -> tuple[str, ...]:
        """The dotted modifiers from the token under the cursor on, ``.1d`` and ``.L2::128B`` among them."""
        match = _MODIFIERS.match(self.text, self.end_of_last)
        assert match is not None
        if match.end() == self.end_of_last:
            return ()
        found = tuple(_MODIFIER.findall(re.sub(r"//[^\n]*|/\*.*?\*/", "", match[0], flags=re.DOTALL)))
        self.jump(match.end())
        return found

    # --- reading what is wanted ---

    def at(self, *texts: str) -> bool:
        """Whether the token under the cursor is one of ``texts``."""
        return self.token.text in texts and self.token.kind != "STRING"

    def take(self, text: str) -> bool:
        """Move past ``text`` if it is under the cursor."""
        if self.token.text == text and self.token.kind != "STRING":
            self.advance()
            return True
        return False

    def expect(self, text: str, after: str = "") -> Token:
        """The token ``text``; a syntax error when another one is there."""
        if self.token.text != text or self.token.kind == "STRING":
            self.fail(f"'{text}'{' after ' + after if after else ''}")
        return self.advance()

    def expect_kind(self, kind: str, what: str) -> Token:
        """A token of ``kind``, called ``what`` in the error message."""
        if self.token.kind != kind:
            self.fail(what)
        return self.advance()

    # --- places and errors ---

    def position(self, offset: int) -> Position:
        """Line and column of ``offset``."""
        counted, line, begins = self._counted if offset >= self._counted[0] else self._origin
        if offset < counted:
            counted, line, begins = 0, 1, 0
        newlines = self.text.count("\n", counted, offset)
        if newlines:
            line, begins = line + newlines, self.text.rfind("\n", counted, offset) + 1
        self._counted = (offset, line, begins)
        return Position(line, offset - begins + 1)

    def place(self, offset: int) -> Place:
        """Line, column and text of the line, for a message."""
        at = self.position(offset)
        end = self.text.find("\n", offset)
        line = self.text[offset - at.column + 1 : end if end >= 0 else len(self.text)]
        return Place(self.source.name, at.line, at.column, text=line.rstrip("\r"))

    def fail(self, expected: str) -> NoReturn:
        """Raise the syntax error "expected ..., found ..." at the token under the cursor."""
        self.fail_at(self.token.start, f"expected {expected}, found {self.token.words}")

    def fail_at(self, offset: int, message: str, hint: str | None = None, id: str = "syntax") -> NoReturn:
        """Raise a TeenyError placed at ``offset``."""
        raise TeenyError(id, message, where=self.place(offset), hint=hint)

    def fail_unknown(self, what: str, token: Token, known: Iterable[str]) -> NoReturn:
        """Raise the error for a word that is none of ``known``."""
        self.fail_at(token.start, f"unknown {what} '{token.text}'", did_you_mean(token.text, known))
