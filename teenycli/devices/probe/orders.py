"""Other orders of arguments of the same kind and size, for a launch that computes something wrong.

May import ``dtypes``, ``launch.plan`` and ``manifest.spec``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from msgspec import Struct
from msgspec.structs import replace

from teenycli.dtypes import DTYPES
from teenycli.launch.plan import Argument, Field, Plan
from teenycli.manifest.spec import ArgSpec


class Slot(Struct, frozen=True):
    """A value that a kernel is passed: an argument, or a member of a struct (``member``, from 0), and its name."""

    argument: int
    member: int | None
    name: str

    def __str__(self) -> str:
        place = f"{self.argument}" if self.member is None else f"{self.argument}.{self.member}"
        return f"{place} '{self.name}'"


class Order(Struct, frozen=True):
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


def orders(plan: Plan, args: Sequence[ArgSpec]) -> Iterator[Order]:
    """Every exchange of two values of the same kind and size, then every cycle of three; values that are equal in all
    launches are not told apart. ``args`` are what the manifest says of the plan's arguments."""
    groups = _groups(plan, args)
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


def _groups(plan: Plan, args: Sequence[ArgSpec]) -> list[list[Slot]]:
    """The slots of a launch by kind (pointer, integer, float) and size; members of structs among them."""
    groups: dict[tuple[str, int], list[Slot]] = {}
    for argument, spec in zip(plan.launches[0].args, args, strict=False):  # hidden ones come after
        for k, (item, name) in enumerate(zip(argument.fields, _labels(spec), strict=True)):
            if item.kind not in DTYPES:
                continue
            dtype = DTYPES[item.kind]
            kind = "float" if dtype.is_float else "ptr" if item.kind == "ptr" else "integer"
            member = k if len(argument.fields) > 1 else None
            groups.setdefault((kind, dtype.size), []).append(Slot(argument.index, member, name))
    return list(groups.values())


def _labels(spec: ArgSpec) -> Iterator[str]:
    """What the user calls the values of an argument, in the order of its fields."""
    if not spec.members:
        yield spec.label
    for member in spec.members:
        yield from _labels(member)
