"""Instructions made ready for a walk: which operands are read, as what, and what is written.

May import ``footprint``'s ``effects``, ``integers``, ``lanes`` and ``trace``, and the rest of ``ptx``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from teenycli.footprint.effects import access_of, space_of
from teenycli.footprint.integers import meaning_of
from teenycli.footprint.lanes import Array
from teenycli.footprint.trace import Access
from teenycli.ptx.code import Mem, Op, Operand, Pair, Reg, Register
from teenycli.ptx.flow import registers_in
from teenycli.ptx.isa import Role
from teenycli.ptx.model import type_width


class Source(Struct, frozen=True):
    """An operand that is read as ``width`` bits; ``register`` is the one that it is all of."""

    operand: Operand | None
    width: int
    register: Register | None


class Step(Struct, frozen=True):
    """``written`` are the registers that it writes, ``target`` the first result, ``second`` the other of a pair,
    ``signed`` whether a wider register is filled up with the sign. ``meaning``: how the bits of the first result come
    about, as integers have it. ``in_memory``: it has an operand in memory, of a ``space``, with the ``access`` that
    ``access_of`` gives."""

    op: Op
    written: tuple[Register, ...]
    target: Operand | None
    second: Operand | None
    sources: tuple[Source, ...]
    signed: bool
    meaning: Callable[[Sequence[Array]], Array] | None
    in_memory: bool
    space: str
    access: tuple[Access, Mem] | None


def results(op: Op) -> Iterator[Register]:
    """The registers that an instruction writes."""
    if op.call is not None:
        for returned in op.call.returns:
            yield from registers_in(returned)
        return
    for spec, operand in zip(op.specs, op.operands, strict=False):
        if spec.role is Role.DST:
            yield from registers_in(operand)


def step_of(op: Op, written: tuple[Register, ...]) -> Step:
    """``op``, which writes these registers, made ready."""
    target: Operand | None = None
    second: Operand | None = None
    sources = []
    for spec, operand in zip(op.specs, op.operands, strict=False):
        if spec.role is Role.DST and target is None:
            target, second = (operand.first, operand.second) if isinstance(operand, Pair) else (operand, None)
        else:
            kind = op.form.type_of(spec, op.mods)
            sources.append(Source(operand, type_width(kind or "b32") or 32, _whole(operand)))
    kind = op.mods.get("dtype") or op.mods.get("type") or ""
    in_memory = any(isinstance(operand, Mem) for operand in op.operands)
    meaning = None if in_memory else meaning_of(op.opcode, op.mods)
    access = access_of(op) if in_memory else None
    signed, space = kind[:1] == "s", space_of(op)
    return Step(op, written, target, second, tuple(sources), signed, meaning, in_memory, space, access)


def _whole(operand: Operand | None) -> Register | None:
    """The register that an operand is all of, as it is."""
    if isinstance(operand, Reg) and operand.part is None and not operand.negated and operand.register.vector == 1:
        return operand.register
    return None
