"""What a Rust file says of launches, as data: impls, the methods that pack arguments, and what these visit.

A method is :data:`Steps`: what it may hand the visitor, in order. Where that depends on values, both ways are there.

May import ``errors``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import Struct

from teenycli.errors import Place

#: The methods of ``RuntimeOp`` that pack arguments, and whether they are the backward's.
PACKING = {
    "pack_args": False,
    "pack_args_for_launch": False,
    "pack_backward_args": True,
    "pack_backward_args_for_launch": True,
}


class Spot(NamedTuple):
    """Line and column in the Rust text, both from 1."""

    line: int
    column: int


class Visit(Struct, frozen=True):
    """One argument: ``visitor.visit_i32(n as i32)``. ``kind`` is a dtype's name or ``ptr``, None when the method is
    none that is known; ``text`` is the expression."""

    method: str
    kind: str | None
    text: str
    at: Spot


class Choice(Struct, frozen=True):
    """One of several ways: of an ``if``, a ``match``, what a feature compiles in. ``what`` decides it."""

    ways: tuple[Steps, ...]
    what: str
    at: Spot


class Repeat(Struct, frozen=True):
    """Steps of a loop, any number of times, none too."""

    steps: Steps
    what: str
    at: Spot


class Call(Struct, frozen=True):
    """Steps of a function or a closure; when it returns, the caller goes on."""

    steps: Steps


class Unknown(Struct, frozen=True):
    """The visitor goes where this file does not tell what happens: any arguments, or none."""

    what: str
    at: Spot


class End(Struct, frozen=True):
    """The method returns."""


class Never(Struct, frozen=True):
    """The method panics."""


Step = Visit | Choice | Repeat | Call | Unknown | End | Never
Steps = tuple[Step, ...]


class Packing(Struct, frozen=True):
    """A method that packs arguments. ``error`` is the first place in it that cannot be parsed, and ``steps`` then are
    unknown."""

    method: str
    steps: Steps
    at: Spot
    error: Spot | None = None

    @property
    def backward(self) -> bool:
        return PACKING[self.method]


class Impl(Struct, frozen=True):
    """``impl RuntimeOp for NAME``, type arguments left out."""

    name: str
    packings: tuple[Packing, ...]
    at: Spot

    def side(self, backward: bool) -> tuple[Packing, ...]:
        """What packs for the forward, or for the backward."""
        return tuple(packing for packing in self.packings if packing.backward is backward)


@dataclass(frozen=True, slots=True)
class RustFile:
    """A file of Rust. ``others`` are its impls of other traits, ``Clone for Pad``. ``errors`` are places that cannot be
    parsed, outside of what packs arguments."""

    name: str
    impls: tuple[Impl, ...]
    others: tuple[str, ...] = ()
    errors: tuple[Spot, ...] = ()
    lines: tuple[bytes, ...] = field(default=(), repr=False)

    def place(self, spot: Spot) -> Place:
        """The spot as a place with its source line."""
        text = self.lines[spot.line - 1] if spot.line <= len(self.lines) else b""
        return Place(self.name, spot.line, spot.column, text=text.decode("utf-8", "replace").rstrip("\r"))
