"""Instructions made ready for a walk: which operands are read, as what, and what is written.

May import ``footprint.slices`` and the rest of ``ptx``.
"""

from __future__ import annotations

from dataclasses import dataclass

from teenycli.ptx.code import Op, Operand, Pair
from teenycli.ptx.isa import Role
from teenycli.ptx.model import type_width


@dataclass(frozen=True, slots=True)
class Source:
    """An operand that is read as ``width`` bits."""

    operand: Operand | None
    width: int


@dataclass(frozen=True, slots=True)
class Step:
    """``target`` is the first result, ``second`` the other of a pair, ``signed`` whether a wider register is filled
    up with the sign."""

    op: Op
    target: Operand | None
    second: Operand | None
    sources: tuple[Source, ...]
    signed: bool


def step_of(op: Op) -> Step:
    """``op`` made ready."""
    target: Operand | None = None
    second: Operand | None = None
    sources = []
    places = op.form.place(op.mods, len(op.operands)) or ()
    for place, operand in zip(places, op.operands, strict=False):
        spec = op.form.operands[place]
        if spec.role is Role.DST and target is None:
            target, second = (operand.first, operand.second) if isinstance(operand, Pair) else (operand, None)
        else:
            kind = op.form.type_of(spec, op.mods)
            sources.append(Source(operand, type_width(kind or "b32") or 32))
    kind = op.mods.get("dtype") or op.mods.get("type") or ""
    return Step(op, target, second, tuple(sources), kind[:1] == "s")
