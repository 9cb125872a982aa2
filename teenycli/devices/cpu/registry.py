"""Which instructions this device has, and what lowers each: filled by the modules of ``ops``.

A lowering is a function ``(x: Lowering, inst: Inst) -> None`` registered for an opcode, with a predicate over named
modifiers that says which it takes. What no lowering takes is found before anything runs.

May import ``ptx.model``, ``ptx.isa``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from teenycli.ptx.code import Op
from teenycli.ptx.isa import Form, forms_of, rows

if TYPE_CHECKING:
    from teenycli.devices.cpu.lower import Lowering
    from teenycli.devices.cpu.program import Inst

Lower = Callable[["Lowering", "Inst"], None]
Mods = Mapping[str, str]


class Entry(Struct, frozen=True):
    """One lowering: the modifiers it takes, and the function."""

    takes: Callable[[Mods], bool]
    lower: Lower


_ENTRIES: dict[str, list[Entry]] = {}


def _always(_: Mods) -> bool:
    return True


def lowers(*opcodes: str, takes: Callable[[Mods], bool] = _always) -> Callable[[Lower], Lower]:
    """Register a lowering of ``opcodes`` for the modifiers that ``takes`` accepts; the first that accepts is used."""

    def register(lower: Lower) -> Lower:
        for opcode in opcodes:
            _ENTRIES.setdefault(opcode, []).append(Entry(takes, lower))
        return lower

    return register


def typed(*types: str, slot: str = "type") -> Callable[[Mods], bool]:
    """Modifiers whose ``slot`` is one of ``types``."""
    known = frozenset(types)
    return lambda mods: mods.get(slot) in known


@lru_cache(maxsize=1)
def entries() -> Mapping[str, list[Entry]]:
    """Every lowering by opcode."""
    from teenycli.devices.cpu import ops

    ops.load()
    return _ENTRIES


#: What ends a block is lowered with the control flow, not by an entry of its own.
CONTROL = frozenset({"bra", "brx", "ret", "exit", "trap", "call"})


def find(opcode: str, mods: Mods) -> Lower | None:
    return next((entry.lower for entry in entries().get(opcode, ()) if entry.takes(mods)), None)


def supports_mods(opcode: str, mods: Mods) -> bool:
    """Whether the device has ``opcode`` with these named modifiers."""
    return opcode in CONTROL or find(opcode, mods) is not None


def supports(op: Op) -> bool:
    """Whether the device has a lowering for this instruction (its calls and operands apart)."""
    return supports_mods(op.opcode, op.mods)


def supports_form(form: Form) -> bool:
    """Whether the device has every instruction of a form of the table, whatever its modifiers."""
    return all(supports_mods(form.opcode, mods) for mods in _combinations(form))


def missing(*, tiers: Sequence[int] = (1, 2, 3)) -> list[Form]:
    """Forms of the table that the device has not, or not with every modifier, in the table's order."""
    forms = (form for opcode in rows() for form in forms_of(opcode))
    return [form for form in forms if form.tier in tiers and not supports_form(form)]


def _combinations(form: Form) -> list[dict[str, str]]:
    """Modifiers of a form: each choice of each slot once, the others at their first, optional ones with and without."""
    base = {slot.name: slot.choices[0] for slot in form.modifiers if slot.required}
    found = [dict(base)]
    for slot in form.modifiers:
        found += [base | {slot.name: choice} for choice in slot.choices]
    return found
