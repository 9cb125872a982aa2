"""How findings count and name. Imports nothing of ours but, for types, ``checks.subject``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from teenycli.checks.subject import Subject


def count(number: int, word: str) -> str:
    """``1 byte``, ``1,024 bytes``."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def triple(values: tuple[int, int, int]) -> str:
    """``(4, 1, 1)``."""
    return f"({', '.join(map(str, values))})"


def which(subject: Subject) -> str:
    """``launch 2: `` before what is said of one of several launches."""
    return f"launch {subject.launch.index}: " if len(subject.plan.launches) > 1 else ""
