"""Other orders of arguments of the same kind and size, for a launch that computes something wrong.

May import ``dtypes`` and ``launch.plan``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from teenycli.dtypes import DTYPES
from teenycli.launch.plan import Argument, Field, Plan


@dataclass(frozen=True, slots=True)
class Slot:
    """A value that a kernel is passed: an argument, or a member of a struct (``member``, from 0)."""

    argument: int
    member: int | None
    name: str

    def __str__(self) -> str:
        return f"{self.argument} '{self.name}'" + ("" if self.member is None else f" (member {self.member})")


@dataclass(frozen=True, slots=True)
class Order:
    """Slots, and at the same places of ``given`` whose values they get instead of their own."""

    slots: tuple[Slot, ...]
    given: tuple[Slot, ...]

    def applied(self, plan: Plan) -> Plan:
        """The plan with the values of every launch in this order."""
        launches = []
        for launch in plan.launches:
            args = list(launch.args)
            for slot, other in zip(self.slots, self.given, strict=True):
                args[slot.argument] = _with(args[slot.argument], slot, _field(launch.args, other))
            launches.append(replace(launch, args=tuple(args)))
        return replace(plan, launches=tuple(launches))

    def __str__(self) -> str:
        if len(self.slots) == 2:
            return f"arguments {self.slots[0]} and {self.slots[1]} look swapped: with them exchanged"
        *first, last = map(str, self.slots)
        names = ", ".join(f"'{slot.name}'" for slot in self.given)
        return f"arguments {', '.join(first)} and {last} look mixed up: with {names} in their places"


def _field(args: Sequence[Argument], slot: Slot) -> Field:
    return args[slot.argument].fields[slot.member or 0]


def _with(argument: Argument, slot: Slot, value: Field) -> Argument:
    """``argument`` with the value of another slot, of the same size."""
    fields = list(argument.fields)
    fields[slot.member or 0] = replace(value, offset=fields[slot.member or 0].offset)
    return replace(argument, fields=tuple(fields))


def orders(plan: Plan) -> Iterator[Order]:
    """Every exchange of two values of the same kind and size, then every cycle of three; values that are equal in all
    launches are not told apart."""
    groups = _groups(plan)
    values = {slot: tuple(_field(launch.args, slot).value for launch in plan.launches)
              for group in groups for slot in group}  # fmt: skip
    for group in groups:
        for a, b in combinations(group, 2):
            if values[a] != values[b]:
                yield Order((a, b), (b, a))
    for group in groups:
        for a, b, c in combinations(group, 3):
            if len({values[a], values[b], values[c]}) == 3:
                yield Order((a, b, c), (b, c, a))
                yield Order((a, b, c), (c, a, b))


def _groups(plan: Plan) -> list[list[Slot]]:
    """The slots of a launch by kind (pointer, integer, float) and size; members of structs among them."""
    groups: dict[tuple[str, int], list[Slot]] = {}
    for argument in plan.launches[0].args:
        for k, item in enumerate(argument.fields):
            if argument.hidden or item.kind not in DTYPES:
                continue
            dtype = DTYPES[item.kind]
            kind = "float" if dtype.is_float else "ptr" if item.kind == "ptr" else "integer"
            member = k if len(argument.fields) > 1 else None
            groups.setdefault((kind, dtype.size), []).append(Slot(argument.index, member, argument.name))
    return list(groups.values())
