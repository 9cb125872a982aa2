"""What a body does with each of its entry's parameters.

Values are followed from ``ld.param`` through copies (mov, cvta, selp, packing) and, as *derived* values, through
arithmetic, without regard to order. A parameter that is handed to a called function, or whose address is taken, has
*escaped*: of it nothing negative can be said.

May import the rest of ``ptx``.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass

from teenycli.ptx.code import Code, Mem, Op, Operand, Pair, Reg, Register, Symbol, Vec
from teenycli.ptx.isa import OperandSpec, Role
from teenycli.ptx.model import Variable, type_width


@dataclass(frozen=True, slots=True, order=True)
class Load:
    """One ``ld.param``: offset in the parameter and width in bytes, and the type of the instruction (``f32``)."""

    offset: int
    size: int
    type: str


@dataclass(frozen=True, slots=True, order=True)
class Access:
    """Memory reached through a parameter: ``load``, ``store`` or ``atomic``, the space, the element type; ``other`` for
    an instruction that is none of these, with its opcode for the type."""

    kind: str
    space: str
    type: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What the body does with one parameter.

    ``pointer``: its value itself is an address (converted by cvta, or in brackets). ``address``: it has a part in
    the making of one. ``as_float``, ``as_integer``: its value is an operand of an instruction of such a type.
    """

    loads: tuple[Load, ...] = ()
    pointer: bool = False
    address: bool = False
    as_float: bool = False
    as_integer: bool = False
    escaped: bool = False
    accesses: tuple[Access, ...] = ()

    @property
    def unused(self) -> bool:
        return not self.loads and not self.escaped


#: Opcodes that pass a value on unchanged.
_COPIES = frozenset({"mov", "cvta", "selp", "shfl"})
_ATOMIC = frozenset({"atom", "red"})
_MEMORY = frozenset({"ld", "ldu", "st", "atom", "red"})
#: Opcodes whose result holds nothing of what went in but by way of memory.
_OPAQUE = frozenset({"ld", "ldu", "atom", "tex", "tld4", "suld", "mbarrier", "setp", "vote", "activemask", "testp"})


@dataclass(slots=True)
class _Facts:
    loads: set[Load]
    accesses: set[Access]
    pointer: bool = False
    address: bool = False
    as_float: bool = False
    as_integer: bool = False
    escaped: bool = False


def usage_of(code: Code) -> tuple[Usage, ...]:
    """The usage of each parameter of ``code``'s function, in order."""
    return tuple(Flow(code).usages())


class Flow:
    """Which parameters' values each register may hold: exactly (``values``), or as a part (``derived``). Sets of
    parameters are integers, a bit each.

    With ``parts`` the unit is not the parameter but each of its offsets that is loaded, as members of a struct are;
    ``sources`` has the (parameter, offset) of each unit in the order of the bits.
    """

    def __init__(self, code: Code, parts: bool = False) -> None:
        self.code = code
        self.params = {id(param): index for index, param in enumerate(code.function.params)}
        self.parts = parts
        self.sources = [] if parts else [(index, 0) for index in range(len(code.function.params))]
        self._numbers = {source: number for number, source in enumerate(self.sources)}
        self.facts = [_Facts(set(), set()) for _ in self.sources]
        self.values: dict[Register, int] = defaultdict(int)
        self.derived: dict[Register, int] = defaultdict(int)
        self.propagate()

    def usages(self) -> list[Usage]:
        """What the body does with each unit."""
        for op in self.code.ops:
            self.observe(op)
        return [
            Usage(
                tuple(sorted(f.loads)), f.pointer, f.address or f.pointer, f.as_float, f.as_integer, f.escaped,
                tuple(sorted(f.accesses)),
            )
            for f in self.facts
        ]  # fmt: skip

    def _unit(self, param: int, offset: int) -> int:
        """The number of the unit at ``offset`` of a parameter."""
        source = (param, offset if self.parts else 0)
        if source not in self._numbers:
            self._numbers[source] = len(self.sources)
            self.sources.append(source)
            self.facts.append(_Facts(set(), set()))
        return self._numbers[source]

    def propagate(self) -> None:
        """To a fixed point, from the registers that parameters are loaded into on."""
        flows: dict[Register, list[tuple[Register, bool]]] = defaultdict(list)
        waiting: deque[Register] = deque()
        for op in self.code.ops:
            for target, source, exact in self._edges(op):
                if isinstance(source, int):
                    self.values[target] |= 1 << source
                    waiting.append(target)
                else:
                    flows[source].append((target, exact))
        while waiting:
            source = waiting.popleft()
            for target, exact in flows[source]:
                if self._pour(source, target, exact):
                    waiting.append(target)

    def _pour(self, source: Register, target: Register, exact: bool) -> bool:
        """What ``source`` holds flows into ``target``; whether that told it anything new."""
        before = self.values[target], self.derived[target]
        if exact:
            self.values[target] |= self.values[source]
            self.derived[target] |= self.derived[source]
        else:
            self.derived[target] |= self.values[source] | self.derived[source]
        return before != (self.values[target], self.derived[target])

    def _edges(self, op: Op) -> Iterator[tuple[Register, Register | int, bool]]:
        """(target, what flows into it, whether unchanged); a parameter's index where it is loaded."""
        if not op.operands or op.call is not None:
            return
        if op.opcode == "ld":
            lanes = op.operands[0].items if isinstance(op.operands[0], Vec) else op.operands[:1]
            for lane, (unit, _) in zip(lanes, self._param_loads(op), strict=False):
                for target in registers_in(lane):
                    yield target, unit, True
            return
        targets = list(registers_in(op.operands[0]))
        if op.opcode not in _OPAQUE:
            for source in (r for operand in op.operands[1:] for r in registers_in(operand) if r.type != "pred"):
                for target in targets:
                    yield target, source, op.opcode in _COPIES

    def _param_of(self, op: Op) -> int | None:
        mem = op.operands[1]
        if isinstance(mem, Mem) and isinstance(mem.base, Variable):
            return self.params.get(id(mem.base))
        return None

    # --- facts ---

    def observe(self, op: Op) -> None:
        """Note what one instruction says of the parameters."""
        if op.call is not None:
            for argument in op.call.args:
                self._escape(argument)
            return
        if op.opcode == "ld":
            for unit, load in self._param_loads(op):
                self.facts[unit].loads.add(load)
        places = op.form.place(op.mods, len(op.operands)) or ()
        for place, operand in zip(places, op.operands, strict=False):
            self._observe_operand(op, op.form.operands[place], operand)

    def _param_loads(self, op: Op) -> Iterator[tuple[int, Load]]:
        """What an ``ld.param`` loads, lane by lane: the unit and the load. Nothing for another ``ld``."""
        param, mem = self._param_of(op), op.operands[1]
        if param is None or not isinstance(mem, Mem):
            return
        size = (type_width(op.mods["type"]) or 8) // 8
        count = {"v2": 2, "v4": 4, "v8": 8}.get(op.mods.get("vec", ""), 1)
        for lane in range(count):
            offset = mem.offset + lane * size
            yield self._unit(param, offset), Load(offset, size, op.mods["type"])

    def _observe_operand(self, op: Op, spec: OperandSpec, operand: Operand | None) -> None:
        if isinstance(operand, Mem):
            self._observe_address(op, operand)
            return
        if isinstance(operand, Symbol) and isinstance(operand.target, Variable):
            self._escape(operand)
        if spec.role is Role.DST:
            return
        if op.opcode == "st" and op.mods.get("space") != "global":
            self._escape(operand)  # a spill, or a call's argument, from where it is not followed
            return
        kind = op.form.type_of(spec, op.mods) or ""
        for register in registers_in(operand):
            for facts in self._facts(self.values[register]):
                if op.opcode == "cvta":
                    facts.pointer = True
                elif kind[:1] in ("f", "e") or kind.startswith("bf"):
                    facts.as_float = True
                elif kind[:1] in ("u", "s") and op.opcode not in ("mov", "st", "ld"):
                    facts.as_integer = True

    def _observe_address(self, op: Op, mem: Mem) -> None:
        if not isinstance(mem.base, Reg):
            if isinstance(mem.base, Variable) and op.opcode != "ld":
                self._escape_whole(mem.base)
            return
        register = mem.base.register
        for facts in self._facts(self.values[register]):
            facts.pointer = True
        for facts in self._facts(self.values[register] | self.derived[register]):
            facts.address = True
            if op.opcode not in _MEMORY:
                facts.accesses.add(Access("other", op.mods.get("space", "generic"), op.opcode))
            else:
                kind = "atomic" if op.opcode in _ATOMIC else "store" if op.opcode == "st" else "load"
                facts.accesses.add(Access(kind, op.mods.get("space", "generic"), op.mods.get("type", "")))

    def _escape(self, operand: Operand | None) -> None:
        if isinstance(operand, Symbol) and isinstance(operand.target, Variable):
            self._escape_whole(operand.target)
        for register in registers_in(operand):
            for facts in self._facts(self.values[register] | self.derived[register]):
                facts.escaped = True

    def _escape_whole(self, variable: Variable) -> None:
        """The address of ``variable`` is taken; if it is a parameter, all of it has escaped."""
        index = self.params.get(id(variable))
        for number, (param, _) in enumerate(self.sources):
            if param == index:
                self.facts[number].escaped = True

    def _facts(self, params: int) -> Iterator[_Facts]:
        while params:
            lowest = params & -params
            yield self.facts[lowest.bit_length() - 1]
            params ^= lowest


def registers_in(operand: Operand | None) -> Iterator[Register]:
    """The registers an operand names, those of an address aside."""
    if isinstance(operand, Reg):
        yield operand.register
    elif isinstance(operand, Vec):
        for item in operand.items:
            yield from registers_in(item)
    elif isinstance(operand, Pair):
        yield from registers_in(operand.first)
