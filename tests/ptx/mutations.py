"""Mutations of PTX text, the same for the same seed: one small change each, of the kinds that slips of hand make."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

#: Words with their dots, numbers, punctuation: what a slip of hand moves as one.
_PIECE = re.compile(r"\"[^\"\n]*\"|[A-Za-z_$%.][\w$.:]*\w|[A-Za-z_$%]|0[fFdDxX][0-9a-fA-F]+|\d+|[^\s\w]")
_COMMENT = re.compile(r"//[^\n]*")
_LETTERS = "abdefmnprstuvxz0123468"


def _pieces(text: str) -> list[tuple[int, int]]:
    hidden = [m.span() for m in _COMMENT.finditer(text)]
    found = []
    position = 0
    for match in _PIECE.finditer(text):
        while position < len(hidden) and hidden[position][1] <= match.start():
            position += 1
        if position == len(hidden) or match.start() < hidden[position][0]:
            found.append(match.span())
    return found


def _drop(rng: random.Random, text: str) -> str:
    start, end = rng.choice(_pieces(text))
    return text[:start] + text[end:]


def _double(rng: random.Random, text: str) -> str:
    start, end = rng.choice(_pieces(text))
    return text[:end] + " " + text[start:end] + text[end:]


def _swap(rng: random.Random, text: str) -> str:
    pieces = _pieces(text)
    at = rng.randrange(len(pieces) - 1)
    (a, b), (c, d) = pieces[at], pieces[at + 1]
    return text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]


def _misspell(rng: random.Random, text: str) -> str:
    words = [(a, b) for a, b in _pieces(text) if b - a > 2 and text[a] not in '"0123456789']
    start, end = rng.choice(words)
    at = rng.randrange(start, end)
    letter = rng.choice(_LETTERS)
    return text[:at] + rng.choice(["", letter, letter + text[at]]) + text[at + 1 :]


def _exchange(rng: random.Random, text: str) -> str:
    """One operand for another of the file: a register of another class, a label, a number."""
    operands = [(a, b) for a, b in _pieces(text) if text[a] in "%$" or text[a].isdigit()]
    (a, b), (c, d) = rng.choice(operands), rng.choice(operands)
    return text[:a] + text[c:d] + text[b:]


def _other_modifier(rng: random.Random, text: str) -> str:
    """One dotted word for another of the file."""
    words = [m.span() for m in re.finditer(r"\.[A-Za-z_]\w*", text)]
    (a, b), (c, d) = rng.choice(words), rng.choice(words)
    return text[:a] + text[c:d] + text[b:]


def _drop_line(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    del lines[rng.choice([i for i, line in enumerate(lines) if line.strip() and not line.strip().startswith("//")])]
    return "\n".join(lines)


def _double_line(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    at = rng.choice([i for i, line in enumerate(lines) if line.strip() and not line.strip().startswith("//")])
    return "\n".join([*lines[: at + 1], lines[at], *lines[at + 1 :]])


def _stray(rng: random.Random, text: str) -> str:
    start, _ = rng.choice(_pieces(text))
    return text[:start] + rng.choice(list(";,{}[]()@!|<>=:*`\\?#&^~")) + " " + text[start:]


def _cut(rng: random.Random, text: str) -> str:
    start, _ = rng.choice(_pieces(text))
    return text[:start]


KINDS: tuple[Callable[[random.Random, str], str], ...] = (
    _drop, _double, _swap, _misspell, _exchange, _other_modifier, _drop_line, _double_line, _stray, _cut,
)  # fmt: skip


def mutants(name: str, text: str, count: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """``count`` mutants of ``text`` as (name of the mutant, text), each kind in its turn, each unlike the original."""
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        rng = random.Random(f"{name}/{seed}/{number}")
        mutant = text
        while mutant == text:
            mutant = kind(rng, text)
        yield f"{name}#{seed}.{number}{kind.__name__}", mutant
