"""What the values and buffers of an entry's parameters are to its body: a bound, a divisor, a stride; elements of f32.

``ptx.usage`` says what is certain and rules build on; this is what a reader of the text would conclude, for a draft of
a description (``launch.draft``) that its user reads over. The unit is one offset of a parameter, as a member of a
struct is. May import the rest of ``ptx``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from teenycli.ptx.code import Code, Label, Mem, Op, Operand, Reg, Register
from teenycli.ptx.isa import Role
from teenycli.ptx.model import Float, Int, type_width
from teenycli.ptx.usage import Flow, Usage, registers_in

#: Element types by the name of the instruction type that works on them, packed ones unpacked.
_FLOATS = {
    "f16": "f16", "f16x2": "f16", "bf16": "bf16", "bf16x2": "bf16", "f32": "f32", "tf32": "f32", "f32x2": "f32",
    "f64": "f64", "e4m3": "e4m3", "e4m3x2": "e4m3", "e4m3x4": "e4m3", "e5m2": "e5m2", "e5m2x2": "e5m2",
    "e5m2x4": "e5m2",
}  # fmt: skip
_FLOAT_BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "e4m3": 8, "e5m2": 8}
#: Opcodes whose result depends on whether an integer has a sign.
_SIGNED = frozenset({"setp", "set", "div", "rem", "cvt", "shr", "min", "max", "abs", "neg"})
#: Opcodes that take integers for numbers; shifts and logic take the bits of anything.
_COUNTS = frozenset({
    "add", "sub", "mul", "mad", "div", "rem", "setp", "min", "max", "abs", "neg", "cvt", "atom", "red", "dp4a", "dp2a",
})  # fmt: skip
_MOVES = frozenset({"mov", "selp", "shfl", "cvta"})
#: Opcodes that leave a value recognisable when their other operands are constants: ``n - 1``, ``4 * n``, ``n / 32``.
_SCALES = frozenset({
    "mov", "selp", "cvt", "cvta", "add", "sub", "mul", "mad", "div", "rem", "shl", "shr", "and", "or", "min", "max",
    "neg", "bfe", "shf",
})  # fmt: skip
_LOGIC = frozenset({"and", "or", "xor", "not", "mov", "setp", "selp"})


@dataclass(slots=True)
class Roles:
    """What one unit is to the body.

    ``types``: of the instructions that take the value itself, those on integers only where the sign counts. ``bound``:
    it is compared; ``loop``: such that a loop goes on. ``divisor`` and ``factor``: something that is no constant is
    divided by it, multiplied with it. ``elements``: what memory reached through it holds, by the bits of an access:
    ``f32``, ``s32``, ``u32``, ``ptr``, or ``b32`` where nothing tells.
    """

    types: set[str] = field(default_factory=set)
    bound: bool = False
    loop: bool = False
    divisor: bool = False
    factor: bool = False
    elements: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Part:
    """One offset of a parameter that the body loads: its usage and its roles."""

    param: int
    offset: int
    usage: Usage
    roles: Roles


def parts_of(code: Code) -> tuple[Part, ...]:
    """Every offset of a parameter that the body loads, in order."""
    flow = Flow(code, parts=True)
    usages = flow.usages()
    roles = _Reader(code, flow).read()
    parts = [Part(*source, usages[k], roles[k]) for k, source in enumerate(flow.sources)]
    return tuple(sorted(parts, key=lambda part: (part.param, part.offset)))


class _Reader:
    """Reads the roles of ``flow``'s units out of a body."""

    def __init__(self, code: Code, flow: Flow) -> None:
        self.code = code
        self.flow = flow
        self.roles = [Roles() for _ in flow.sources]
        self.near = _closure(flow.values, _scalings(code))

    def read(self) -> list[Roles]:
        compared: dict[Register, int] = defaultdict(int)
        for op in self.code.ops:
            if op.call is None and op.operands:
                self._arithmetic(op)
                if op.opcode == "setp":
                    bits = self._near(op.operands[1:])
                    for target in registers_in(op.operands[0]):
                        compared[target] |= bits
        self._loops(_closure(compared, _logic(self.code)))
        self._elements()
        return self.roles

    def _of(self, bits: int) -> Iterator[Roles]:
        while bits:
            lowest = bits & -bits
            yield self.roles[lowest.bit_length() - 1]
            bits ^= lowest

    def _near(self, operands: tuple[Operand | None, ...]) -> int:
        bits = 0
        for operand in operands:
            for register in registers_in(operand):
                bits |= self.near.get(register, 0)
        return bits

    def _arithmetic(self, op: Op) -> None:
        for kind, register in _typed(op, results=False):
            if kind in _FLOATS or (op.opcode in _SIGNED and kind[:1] in "su"):
                for roles in self._of(self.flow.values.get(register, 0)):
                    roles.types.add(kind)
        if op.opcode in ("setp", "set", "min", "max"):
            for roles in self._of(self._near(op.operands[1:])):
                roles.bound = True
        elif op.opcode in ("div", "rem") and len(op.operands) > 2:
            for roles in self._of(self._near(op.operands[2:3])):
                roles.divisor = True
        elif op.opcode in ("mul", "mad", "fma") and all(isinstance(each, Reg) for each in op.operands[1:3]):
            for roles in self._of(self._near(op.operands[1:3])):
                roles.factor = True

    def _loops(self, compared: Mapping[Register, int]) -> None:
        """A comparison that a branch backwards depends on keeps a loop going."""
        for index, op in enumerate(self.code.ops):
            if op.opcode != "bra" or op.guard is None:
                continue
            target = op.operands[0]
            if isinstance(target, Label) and self.code.labels[target.name] <= index:
                for roles in self._of(compared.get(op.guard.register, 0)):
                    roles.loop = True

    # --- what memory holds ---

    def _elements(self) -> None:
        kinds = _Kinds(self.code)
        for op in self.code.ops:
            if op.opcode not in ("ld", "ldu", "st", "atom", "red"):
                continue
            for mem in (operand for operand in op.operands if isinstance(operand, Mem)):
                if not isinstance(mem.base, Reg):
                    continue
                register = mem.base.register
                bits = self.flow.values.get(register, 0) | self.flow.derived.get(register, 0)
                if bits:
                    moved = [r for operand in op.operands if operand is not mem for r in registers_in(operand)]
                    element = kinds.element(op, moved)
                    for roles in self._of(bits):
                        roles.elements.add(element)


class _Kinds:
    """As what the registers of a body are read, and as what they are written: through moves, in their direction, since
    one zero may serve a counter and a float."""

    def __init__(self, code: Code) -> None:
        self._names: list[str] = ["ptr"]
        reads: dict[Register, int] = defaultdict(int)
        writes: dict[Register, int] = defaultdict(int)
        for op in code.ops:
            if op.call is not None:
                continue
            for operand in op.operands:
                if isinstance(operand, Mem) and isinstance(operand.base, Reg):
                    reads[operand.base.register] |= 1
            if op.opcode not in ("ld", "ldu", "st", "mov"):
                targets = set(registers_in(op.operands[0])) if op.operands else set()
                kinds = list(_typed(op, results=True))
                for kind, register in kinds:
                    if kind in _FLOATS or _counts(op, kinds):
                        bit = self._bit(kind)
                        writes[register] |= bit if register in targets else 0
                        reads[register] |= bit
        moves = list(_moves(code))
        self._fitting: dict[int, int] = {}
        self._reads = _closure(reads, ((target, source) for source, target in moves), self._holdable)
        self._writes = _closure(writes, iter(moves), self._holdable)

    def _holdable(self, register: Register) -> int:
        """The kinds that fit a register: half of a packed word holds no f32, though it becomes part of one."""
        bits = type_width(register.type) or 64
        if bits not in self._fitting:
            widths = [_FLOAT_BITS.get(_FLOATS.get(name, ""), 0) for name in self._names]
            self._fitting[bits] = sum(1 << k for k, width in enumerate(widths) if width <= bits)
        return self._fitting[bits]

    def _bit(self, kind: str) -> int:
        if kind not in self._names:
            self._names.append(kind)
        return 1 << self._names.index(kind)

    def _of(self, op: Op, registers: list[Register]) -> set[str]:
        """What is known of the registers that a memory access moves."""
        bits = 0
        for register in registers:
            bits |= self._writes.get(register, 0) if op.opcode != "ld" else 0
            bits |= self._reads.get(register, 0) if op.opcode != "st" else 0
        return {name for k, name in enumerate(self._names) if bits >> k & 1}

    def element(self, op: Op, moved: list[Register]) -> str:
        """The element type of a memory access: that of the registers moved, else as the access says."""
        declared = op.mods.get("type", "b8")
        bits = type_width(declared) or 8
        if declared in _FLOATS:
            return _FLOATS[declared]
        kinds = self._of(op, moved)
        floats = {_FLOATS[kind] for kind in kinds if kind in _FLOATS}
        fitting = sorted(kind for kind in floats if _FLOAT_BITS[kind] <= bits)
        if fitting:
            return max(fitting, key=lambda kind: _FLOAT_BITS[kind])  # a narrow one is packed, if none has its width
        if "ptr" in kinds and bits == 64:
            return "ptr"
        if any(kind[0] == "s" for kind in kinds) or declared[0] == "s":
            return f"s{bits}"
        return f"u{bits}" if declared[0] == "u" or any(kind[0] == "u" for kind in kinds) else f"b{bits}"


def _counts(op: Op, kinds: list[tuple[str, Register]]) -> bool:
    """Whether the integers of ``op`` are numbers to it; a conversion between widths only moves bits."""
    if op.opcode == "cvt":
        return any(kind in _FLOATS for kind, _ in kinds)
    return op.opcode in _COUNTS


def _moves(code: Code) -> Iterator[tuple[Register, Register]]:
    """(source, target) of instructions that pass bits on."""
    for op in code.ops:
        if op.call is None and op.opcode in _MOVES and op.operands:
            for target in registers_in(op.operands[0]):
                for operand in op.operands[1:3]:
                    yield from ((r, target) for r in registers_in(operand) if r.type != "pred")


def _typed(op: Op, results: bool) -> Iterator[tuple[str, Register]]:
    """The registers an instruction reads (and writes, with ``results``), each with the type that it has there."""
    places = op.form.place(op.mods, len(op.operands)) or ()
    for place, operand in zip(places, op.operands, strict=False):
        spec = op.form.operands[place]
        kind = op.form.type_of(spec, op.mods)
        if kind and kind != "pred" and (results or spec.role is not Role.DST):
            for register in registers_in(operand):
                yield kind, register


def _scalings(code: Code) -> Iterator[tuple[Register, Register]]:
    """(source, target) of instructions that change a value by constants alone."""
    for op in code.ops:
        if op.call is None and op.opcode in _SCALES and op.operands:
            sources = {r for operand in op.operands[1:] for r in registers_in(operand) if r.type != "pred"}
            constants = all(isinstance(operand, Reg | Int | Float) for operand in op.operands[1:])
            if len(sources) == 1 and constants:
                for target in registers_in(op.operands[0]):
                    yield next(iter(sources)), target


def _logic(code: Code) -> Iterator[tuple[Register, Register]]:
    """(source, target) of predicates that are made of predicates."""
    for op in code.ops:
        if op.call is None and op.opcode in _LOGIC and op.operands:
            for target in registers_in(op.operands[0]):
                if target.type == "pred":
                    for operand in op.operands[1:]:
                        yield from ((r, target) for r in registers_in(operand) if r.type == "pred")


def _closure(
    start: Mapping[Register, int],
    edges: Iterator[tuple[Register, Register]],
    holdable: Callable[[Register], int] | None = None,
) -> dict[Register, int]:
    """The sets of bits ``start``, poured along ``edges`` until nothing changes; into each register only what is
    ``holdable``."""
    flows: dict[Register, list[Register]] = defaultdict(list)
    for source, target in edges:
        flows[source].append(target)
    bits = defaultdict(int, start)
    waiting = list(start)
    while waiting:
        source = waiting.pop()
        for target in flows.get(source, ()):
            more = bits[source] & ~bits[target] & (-1 if holdable is None else holdable(target))
            if more:
                bits[target] |= more
                waiting.append(target)
    return bits
