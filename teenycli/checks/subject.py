"""What a rule looks at: launches of a plan, with the entry they are of.

May import ``launch``, ``manifest``, ``ptx``, ``arch`` and ``errors``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct

from teenycli.arch import Limits, Target, limits_of, parse_target
from teenycli.errors import Place
from teenycli.launch.plan import Argument, Buffer, Field, Launch, Plan
from teenycli.manifest.spec import ArgSpec, KernelSpec, OpSpec
from teenycli.ptx import code_of
from teenycli.ptx.axes import axes_read
from teenycli.ptx.code import Code, Op, specials_in
from teenycli.ptx.elements import FLOATS
from teenycli.ptx.flow import Flow
from teenycli.ptx.layout import Slot, layout
from teenycli.ptx.metadata import Metadata, metadata_of
from teenycli.ptx.model import Function, Module
from teenycli.ptx.search import reached as functions_reached
from teenycli.ptx.search import shared_dynamic, shared_static
from teenycli.ptx.strides import Reached, Unit, reached
from teenycli.ptx.usage import Usage, Use, usages
from teenycli.ptx.warps import warp_wide
from teenycli.releases import Driver

if TYPE_CHECKING:
    from teenycli.footprint import Survey


class Compiled(Struct, dict=True):
    """An entry as the rules read it. ``sm`` is the architecture that offsets and limits are taken for.

    What is asked of it is found out once; :func:`compiled` gives all plans of an entry the same one.
    """

    module: Module
    entry: Function
    sm: int

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """All parameters of the entry, laid out."""
        return layout(self.entry, self.sm)

    @cached_property
    def code(self) -> Code:
        """The body. Parses it."""
        return code_of(self.module, self.entry)

    @cached_property
    def flow(self) -> Flow:
        """The ways of values through the body."""
        return Flow(self.code)

    @cached_property
    def usages(self) -> tuple[Usage, ...]:
        """What the body does with each parameter."""
        return usages(self.flow)

    @cached_property
    def reached(self) -> dict[Unit, Reached]:
        """How the body makes the addresses that each parameter is part of."""
        return reached(self.flow)

    @cached_property
    def survey(self) -> Survey:
        """What a look at what launches touch needs of the body. Imports numpy."""
        from teenycli.footprint import Survey

        return Survey(self.module, self.entry, self.slots, self.flow)

    @cached_property
    def warp_wide(self) -> Op | None:
        """An instruction that a whole warp takes part in."""
        return warp_wide(self.code)

    @cached_property
    def computed(self) -> frozenset[str]:
        """The floating-point types that something is computed in: what is of others is only moved."""
        ops = (
            op for code in self.codes for op in code.ops if op.opcode not in ("ld", "ldu", "st", "mov", "selp", "shfl")
        )
        return frozenset(FLOATS[kind] for op in ops for kind in op.mods.values() if kind in FLOATS)

    @cached_property
    def has_locks(self) -> bool:
        """Whether threads may take turns: an exchange that asks what was there is how they lock others out."""
        return any(op.opcode == "atom" and op.mods.get("op") == "cas" for op in self.code.ops)

    @cached_property
    def codes(self) -> tuple[Code, ...]:
        """The bodies of the entry and of all that it calls."""
        return tuple(code_of(self.module, function) for function in functions_reached(self.module, self.entry))

    @cached_property
    def waits_for_grid(self) -> bool:
        """Whether it asks for the memory of the grid's own barrier, which lies where %envreg1 and %envreg2 say (CUDA's
        cooperative_groups); only a cooperative launch has it."""
        if "%envreg" not in self.module.source.text:
            return False
        operands = (operand for code in self.codes for op in code.ops for operand in op.operands)
        names = {special.name for operand in operands for special in specials_in(operand)}
        return bool(names & {"%envreg1", "%envreg2"})

    @cached_property
    def axes(self) -> tuple[str, str]:
        """The dimensions of its index in the block, and of the block's in the grid, that a thread asks for."""
        return axes_read(self.codes)

    @cached_property
    def metadata(self) -> Metadata:
        """What the compiler noted beside the code."""
        return metadata_of(self.module, self.entry)

    @cached_property
    def static_shared(self) -> int:
        return shared_static(self.module, self.entry)

    @cached_property
    def has_dynamic_shared(self) -> bool:
        return shared_dynamic(self.module, self.entry)

    def declared(self, slot: Slot) -> str:
        """Where a parameter is declared, for a note."""
        return f"{slot.param.name} is declared at {self.module.source.name}:{slot.param.at.line}"


def compiled(module: Module, entry: Function, sm: int) -> Compiled:
    """The entry for an architecture: the same each time that it is asked for."""
    key = entry.name, sm
    if key not in module.kept:
        module.kept[key] = Compiled(module, entry, sm)
    known = module.kept[key]
    assert isinstance(known, Compiled)
    return known


class Passed(Protocol):
    """Arguments beside the parameters that they stand for: all that the rules on arguments look at."""

    @property
    def entry(self) -> Function: ...
    @property
    def args(self) -> tuple[Argument, ...]: ...
    @property
    def visible(self) -> tuple[Slot, ...]: ...
    @property
    def hidden(self) -> int: ...
    @property
    def usages(self) -> tuple[Usage, ...]: ...
    def key(self, name: str) -> Place:
        """The place of an argument's ``source``, or of all arguments (``args``)."""

    def declared(self, slot: Slot) -> str:
        """Where a parameter is declared, for a note."""

    def cure(self, kinds: Sequence[str], slot: Slot) -> str | None:
        """How to pass one of ``kinds`` (of dtypes, ``ptr``, ``struct``), for a hint."""


class Host(Struct, frozen=True):
    """What launches are for, as far as it is said: an architecture, a driver. Else it is what the PTX names."""

    gpu: Target | None = None
    driver: Driver | None = None


class Passing(NamedTuple):
    """A value that is passed: an argument, or a member of one, with what the body does with it; None where it loads
    nothing there as one value."""

    argument: Argument
    slot: Slot
    item: Field
    use: Use | None

    @property
    def words(self) -> str:
        """``3 'N'``, of a struct with the place of the member."""
        member = f" at byte {self.item.offset}" if len(self.argument.fields) > 1 else ""
        return f"{self.argument.index} '{self.argument.name}'{member}"


class Subject(Struct, dict=True):
    """A launch to judge; ``spec`` is the op that the plan is of."""

    plan: Plan
    launch: Launch
    compiled: Compiled
    spec: OpSpec
    host: Host = Host()

    @property
    def module(self) -> Module:
        return self.compiled.module

    @property
    def entry(self) -> Function:
        return self.compiled.entry

    @property
    def sm(self) -> int:
        return self.compiled.sm

    @property
    def slots(self) -> tuple[Slot, ...]:
        return self.compiled.slots

    @property
    def usages(self) -> tuple[Usage, ...]:
        return self.compiled.usages

    @property
    def static_shared(self) -> int:
        return self.compiled.static_shared

    @cached_property
    def hidden(self) -> int:
        """How many parameters at the end the compiler appended."""
        return sum(argument.hidden for argument in self.launch.args)

    @cached_property
    def visible(self) -> tuple[Slot, ...]:
        """The parameters that arguments of the user's stand for."""
        return self.slots[: len(self.slots) - self.hidden]

    @cached_property
    def args(self) -> tuple[Argument, ...]:
        """The user's arguments."""
        return tuple(argument for argument in self.launch.args if not argument.hidden)

    @cached_property
    def passed(self) -> tuple[Passing, ...]:
        """Each value that the user's arguments pass, in order. As many of these as there are parameters for."""
        return tuple(
            Passing(argument, slot, item, usage if len(argument.fields) == 1 else usage.part(item.offset))
            for argument, slot in zip(self.args, self.visible, strict=False)
            for usage in (self.usages[slot.index],)
            for item in argument.fields
        )

    @property
    def limits(self) -> Limits:
        return limits_of(self.sm)

    @property
    def kernel(self) -> KernelSpec:
        """What the manifest says of the launch: the op, or its backward."""
        return self.spec.kernel(self.plan.backward)

    def key(self, name: str) -> Place:
        """The place of a key of the op or its backward: ``grid``, or of what a plan gives as ``source``."""
        for origin in (self.kernel.origin, self.spec.origin):
            if name.startswith(f"{origin.prefix}."):
                return origin.place(name.removeprefix(f"{origin.prefix}."))
        return self.kernel.origin.place(name)

    def place_of(self, op: Op) -> Place:
        """Where an instruction stands in the PTX."""
        return Place(self.module.source.name, op.at.line, op.at.column)

    def source_of(self, buffer: Buffer) -> str:
        """The key of the argument that points to ``buffer``."""
        return next((argument.source for argument in self.args if buffer.name in argument.buffers), "args")

    def named(self, argument: Argument, item: Field) -> str | None:
        """The dim, scalar or const that ``argument`` passes as it is; None for anything else that comes to a value."""
        text = self._text(argument, item)
        return text if text in {*self.plan.case, *self.plan.scalars, *self.plan.consts} else None

    def is_literal(self, argument: Argument, item: Field, most: int) -> bool:
        """Whether ``argument`` passes a number that is written out, up to ``most``."""
        text = self._text(argument, item)
        return text is not None and text.isdecimal() and int(text) <= most

    def _text(self, argument: Argument, item: Field) -> str | None:
        """What the manifest says of a value that ``argument`` passes."""
        if argument.index >= len(self.kernel.args):
            return None
        for spec, field in zip(_leaves(self.kernel.args[argument.index]), argument.fields, strict=False):
            if field is item and spec.value is not None:
                return spec.value.text.strip()
        return None

    def declared(self, slot: Slot) -> str:
        """Where a parameter is declared, for a note."""
        return self.compiled.declared(slot)

    def cure(self, kinds: Sequence[str], slot: Slot) -> str | None:
        """How the manifest writes an argument of one of ``kinds``, for a hint."""
        if kinds == ["struct"]:
            return f"write it as a struct of {slot.size:,} byte{'' if slot.size == 1 else 's'}, '{{…}}'"
        if kinds == ["ptr"]:
            return "write it as ptr"
        return f"kinds that fit: {', '.join(kinds)}" if kinds else None


def _leaves(spec: ArgSpec) -> Iterator[ArgSpec]:
    """An argument, or the members of a struct."""
    if not spec.members:
        yield spec
    for member in spec.members:
        yield from _leaves(member)


def subjects_of(plan: Plan, module: Module, spec: OpSpec, host: Host | None = None) -> tuple[Subject, ...]:
    """A subject for each launch of the plan, for the ``host``'s architecture, else the entry's own ``.target``."""
    entry = next(e for e in module.entries if e.name == plan.entry)
    host = host or Host()
    shared = compiled(module, entry, (host.gpu or parse_target(module.target)).sm)
    return tuple(Subject(plan, launch, shared, spec, host) for launch in plan.launches)
