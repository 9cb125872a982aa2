"""What a ``RuntimeOp`` visits against the parameters of its entry: the rules on arguments, with no manifest.

Where loops and conditions leave the visits open, only what is certain is judged: an error says that no number of
turns and no choice of ways fits. May import ``rust`` and, in this room, ``arguments`` and ``subject``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from msgspec import Struct

from teenycli.checks.arguments import argument_count, argument_kind, argument_width, fits_slot, signature
from teenycli.checks.subject import Compiled
from teenycli.dtypes import DTYPES
from teenycli.errors import Finding, Place, Severity
from teenycli.launch.plan import Address, Argument, Field
from teenycli.ptx.layout import Slot
from teenycli.ptx.model import Function
from teenycli.ptx.usage import Usage
from teenycli.rust.model import Packing, RustFile, Steps, Visit
from teenycli.rust.ways import Reach, certain, certain_last, doubts, ways

#: Kinds that teenygrad's ArgVisitor has a method for.
_VISITED = ("ptr", "i32", "u32", "f32")
#: Arguments beyond the parameters that are counted, so that "at least 9" can be said.
_BEYOND = 64


class Target(Struct, frozen=True):
    """The entry that a side of an impl is launched with; the compiler appended the ``hidden`` last parameters."""

    compiled: Compiled
    hidden: int

    @property
    def visible(self) -> tuple[Slot, ...]:
        return self.compiled.slots[: len(self.compiled.slots) - self.hidden]


class Visited(Struct, dict=True):
    """Visits in a row beside as many parameters of the target, from parameter ``first`` on: a ``Passed``.

    Where ``part`` is set, they are not all that the method visits.
    """

    file: RustFile
    packing: Packing
    visits: tuple[Visit, ...]
    target: Target
    first: int = 0
    part: bool = False

    @property
    def entry(self) -> Function:
        return self.target.compiled.entry

    @property
    def usages(self) -> tuple[Usage, ...]:
        return self.target.compiled.usages

    @property
    def hidden(self) -> int:
        return self.target.hidden

    @cached_property
    def visible(self) -> tuple[Slot, ...]:
        slots = self.target.visible[self.first :]
        return slots[: len(self.visits)] if self.part else slots

    @cached_property
    def args(self) -> tuple[Argument, ...]:
        slots: Sequence[Slot | None] = [*self.visible, *[None] * len(self.visits)]
        return tuple(
            _argument(visit, self.first + k, slot)
            for k, (visit, slot) in enumerate(zip(self.visits, slots, strict=False))
        )

    def key(self, name: str) -> Place:
        """The place of the method, or of the visit whose number in this row ``name`` is."""
        return self.file.place(self.packing.at if name == "args" else self.visits[int(name) - self.first].at)

    def declared(self, slot: Slot) -> str:
        """Where a parameter is declared, for a note."""
        return self.target.compiled.declared(slot)

    def cure(self, kinds: Sequence[str], slot: Slot) -> str | None:
        """Which methods of the visitor fit, for a hint."""
        methods = [f"visit_{kind}" for kind in _VISITED if kind in kinds]
        if methods:
            return f"pass it with {' or '.join(methods)}"
        return f"ArgVisitor has no method for a parameter of {slot.size:,} bytes like this" if kinds else None


def visited(file: RustFile, packing: Packing, target: Target) -> Iterator[Finding]:
    """Every finding about what one method visits, and a note on what could not be judged."""
    if packing.error is not None:
        message = f"{packing.method} cannot be parsed"
        yield Finding("rust-syntax", message, where=file.place(packing.error), hint="does it compile?")
        return
    steps, method = packing.steps, packing.method
    exact = ways(steps)
    if exact == []:
        message = f"{method} panics in every way through it: there is nothing to compare"
        yield _note(file, packing, message)
    elif exact is not None:
        yield from _of_ways(file, packing, target, exact)
    else:
        yield from _open(file, packing, target, steps)


def _of_ways(
    file: RustFile, packing: Packing, target: Target, exact: list[tuple[Visit, ...]]
) -> Iterator[Finding]:  # fmt: skip
    """Findings where each way is known: those of the way that comes closest, unless one fits."""
    found = [(visits, list(_findings(Visited(file, packing, visits, target)))) for visits in exact]
    fitting = [visits for visits, findings in found if not findings]
    wanted = len(target.visible)
    if not fitting:
        _, findings = min(found, key=lambda each: (abs(len(each[0]) - wanted), len(each[1])))
        more = f"; no way through {packing.method} fits, and this one comes closest" if len(exact) > 1 else ""
        yield from (finding.but(message=finding.message + more) for finding in findings)
        return
    yield from _strange(file, packing, fitting[0])
    if len(fitting) < len(exact):
        message = f"{len(fitting)} of the {len(exact)} ways through {packing.method} fit {target.compiled.entry.name}"
        yield _note(file, packing, f"{message}: which one is taken depends on {_reasons(packing.steps)}")


def _open(file: RustFile, packing: Packing, target: Target, steps: Steps) -> Iterator[Finding]:
    """Findings where a loop, or what is not understood, leaves the visits open."""
    wanted = len(target.visible)
    entry = target.compiled.entry.name
    possible = Reach(lambda _visit, _k: True, wanted + _BEYOND).counts(steps)
    if not possible:
        yield _note(file, packing, f"{packing.method} panics in every way through it: there is nothing to compare")
        return
    if wanted not in possible:
        yield Finding(
            "argument-count",
            f"{_range(possible, wanted + _BEYOND)} for an entry of {wanted:,} parameter{'' if wanted == 1 else 's'}",
            where=file.place(packing.at),
            note=f"{entry} takes {signature(target.visible)}",
        )
        return
    first, last = certain(steps), certain_last(steps)
    findings = list(_findings(Visited(file, packing, first, target, part=True)))
    if len(first) + len(last) <= wanted:
        findings += _findings(Visited(file, packing, last, target, wanted - len(last), part=True))
    if findings:
        yield from findings
        return
    fitting = Reach(lambda visit, k: k < wanted and _fits(visit, k, target), wanted + _BEYOND).counts(steps)
    reasons = _reasons(steps)
    if wanted not in fitting:
        message = f"whatever happens at {reasons}, the kinds of what {packing.method} visits do not fit {entry}"
        note = f"{entry} takes {signature(target.visible)}"
        yield Finding("argument-kind", message, where=file.place(next(doubts(steps))[1]), note=note)
        return
    message = f"the {wanted:,} parameters of {entry} fit, if {reasons} come{'' if ' and ' in reasons else 's'} to them"
    yield _note(file, packing, message)


def _findings(row: Visited) -> Iterator[Finding]:
    for rule in (argument_count, argument_width, argument_kind):
        yield from rule(row)


def _strange(file: RustFile, packing: Packing, visits: Sequence[Visit]) -> Iterator[Finding]:
    """A note on visits whose kind is not known."""
    strange = [visit for visit in visits if visit.kind is None]
    if strange:
        names = ", ".join(dict.fromkeys(f"{visit.method} of '{visit.text}'" for visit in strange[:3]))
        message = f"the kind of what {packing.method} passes is not known: {names}"
        yield _note(file, packing, message).but(where=file.place(strange[0].at))


def _argument(visit: Visit, index: int, slot: Slot | None) -> Argument:
    """A visit as an argument; of a kind that is not known, as one that fits."""
    if visit.kind is None:
        size = 0 if slot is None else slot.size
        return Argument(index, visit.text, visit.method, size, (Field("bytes", b""),), source=str(index))
    value = Address() if visit.kind == "ptr" else 0
    size = DTYPES[visit.kind].size
    return Argument(index, visit.text, visit.kind, size, (Field(visit.kind, value),), source=str(index))


def _fits(visit: Visit, k: int, target: Target) -> bool:
    slot = target.visible[k]
    return fits_slot(_argument(visit, k, slot), slot, target.compiled.usages[slot.index])


# --- words -------------------------------------------------------------------------------------------------------


def _note(file: RustFile, packing: Packing, message: str) -> Finding:
    return Finding("rust-undecided", message, Severity.NOTE, file.place(packing.at))


def _reasons(steps: Steps) -> str:
    """What leaves the visits open, the first three."""
    found = list(dict.fromkeys(f"'{what}' (line {at.line})" for what, at in doubts(steps)))
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return " and ".join(found[:3]) + more


def _range(possible: frozenset[int], limit: int) -> str:
    """How many arguments there can be: ``at least 3 arguments``."""
    least, most = min(possible), max(possible)
    count = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    if most >= limit:
        count = f"at least {least:,}"
    return f"{count} argument{'' if count.endswith(' 1') or count == '1' else 's'}"
