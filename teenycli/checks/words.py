"""How findings count and name. Imports nothing of ours but, for types, ``checks.subject`` and ``launch.plan``."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from teenycli.checks.subject import Subject
    from teenycli.launch.plan import Argument

_Key = TypeVar("_Key", bound=Hashable)


def count(number: int, word: str) -> str:
    """``1 byte``, ``1,024 bytes``."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def triple(values: tuple[int, int, int]) -> str:
    """``(4, 1, 1)``."""
    return f"({', '.join(map(str, values))})"


def twice(keyed: Iterable[tuple[_Key, Argument]]) -> tuple[Argument, Argument, _Key] | None:
    """Of arguments with what they pass the first two that pass the same, and what that is."""
    first: dict[_Key, Argument] = {}
    for key, argument in keyed:
        other = first.setdefault(key, argument)
        if other is not argument:
            return other, argument, key
    return None


def which(subject: Subject) -> str:
    """``launch 2: `` before what is said of one of several launches."""
    return f"launch {subject.launch.index}: " if len(subject.plan.launches) > 1 else ""
