"""Findings and errors: one shape for everything teeny has to say about a problem.

A :class:`Finding` is data: a stable id, a message that names both sides of the mismatch, the place, a hint that
says the cure, a note. A :class:`TeenyError` carries one out of a function that cannot go on. The same object is
drawn in colour, in plain ASCII and as JSON by ``report``.

Imports nothing of ours but ``exits``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from teenycli.exits import Exit


class Severity(StrEnum):
    """How bad a finding is; only ``ERROR`` stops a launch."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a problem is: a point in a file, or a key of the manifest, or both.

    ``line`` and ``column`` count from 1; 0 means unknown. ``text`` is the source line, for the caret.
    """

    file: str | None = None
    line: int = 0
    column: int = 0
    key: str | None = None
    text: str | None = None

    def __str__(self) -> str:
        spot = self.file or ""
        if self.line:
            spot += f":{self.line}"
            if self.column:
                spot += f":{self.column}"
        if self.key is not None:
            spot = f"{spot}: {self.key}" if spot else self.key
        return spot


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or may be.

    ``id`` is stable and kebab-case (``argument-count``). ``message`` names both sides of the mismatch.
    """

    id: str
    message: str
    severity: Severity = Severity.ERROR
    where: Place | None = None
    hint: str | None = None
    note: str | None = None

    def but(self, **changes: Any) -> Finding:
        """The same finding with other fields."""
        return replace(self, **changes)


class TeenyError(Exception):
    """A problem that ends the work at hand, with the exit code it leads to."""

    def __init__(
        self,
        id: str,
        message: str,
        *,
        where: Place | None = None,
        hint: str | None = None,
        note: str | None = None,
        exit: Exit = Exit.UNUSABLE,
    ) -> None:
        message = clipped(message)
        super().__init__(message)
        self.finding = Finding(id, message, Severity.ERROR, where, hint and clipped(hint), note and clipped(note))
        self.exit = exit

    def at(self, where: Place) -> TeenyError:
        """The same error, placed at ``where`` if it had no place of its own."""
        if self.finding.where is None:
            self.finding = self.finding.but(where=where)
        return self

    def __str__(self) -> str:
        place = f"{self.finding.where}: " if self.finding.where else ""
        return f"{place}{self.finding.message}"


def clipped(text: str) -> str:
    """``text`` with each run of over 200 characters without a blank cut in its middle: names come from files."""
    return re.sub(r"\S{201,}", lambda run: f"{run[0][:120]}…{run[0][-40:]}", text)


#: Most names to compare a misspelt one with; difflib takes milliseconds for a hundred.
_CANDIDATES = 300


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A hint such as ``did you mean 'softmax'?`` for a misspelt ``word``, or None when nothing known is close."""
    import difflib

    # Close words have lengths that are close, and mostly the same beginning: those first, if there are many.
    candidates = [name for name in known if abs(len(name) - len(word)) <= 0.8 * len(word) + 1 and len(name) < 200]
    if len(candidates) > _CANDIDATES:
        candidates = [name for name in candidates if name[:2] == word[:2]][:_CANDIDATES]
    near = difflib.get_close_matches(word, candidates, n=1, cutoff=0.6)
    if not near:
        folded = {c.casefold(): c for c in candidates}
        close = difflib.get_close_matches(word.casefold(), list(folded), n=1, cutoff=0.6)
        near = [folded[c] for c in close]
    return f"did you mean '{near[0]}'?" if near else None
