"""What each value that a parameter brings is to the instructions of a flow: an address, a bound, a divisor, a float.

May import ``ptx.flow``, ``ptx.elements`` and what they may.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field

from teenycli.ptx.code import Code, Label, Op, Reg, Special
from teenycli.ptx.effects import Effect
from teenycli.ptx.elements import FLOATS, Elements
from teenycli.ptx.flow import COPIES, Flow, Frame, Record
from teenycli.ptx.graph import BASE, FOREIGN, HELD, NEAR, PART, TEST, TIMES, numbers
from teenycli.ptx.model import type_width

#: Opcodes whose result depends on whether an integer has a sign.
_SIGNED = frozenset({"setp", "set", "div", "rem", "cvt", "shr", "min", "max", "abs", "neg"})
_COMPARES = frozenset({"setp", "set", "min", "max"})
_PRODUCTS = frozenset({"mul", "mad", "fma"})
_MOVES = frozenset({*COPIES, "st", "ld", "ldu"})


class Load(Struct, frozen=True, order=True):
    """One ``ld.param``: offset in the parameter and width in bytes, and the type of the instruction (``f32``)."""

    offset: int
    size: int
    type: str


class Access(Struct, frozen=True, order=True):
    """Memory reached through a parameter.

    ``kind``: ``load``, ``store``, ``atomic``, ``hint`` (a prefetch and its like), or ``other`` for an instruction that
    is none of these, with its opcode for the ``type``. ``space`` as the instruction has it, ``generic`` where it has
    none; ``tex`` and ``surf`` where the parameter is the handle of a texture or surface. One access moves ``count``
    elements of ``type``. ``opcode`` is empty for ld, st, atom and red, else the instruction's name
    (``cp.async.bulk``, ``ldmatrix``).
    """

    kind: str
    space: str
    type: str
    count: int = 1
    opcode: str = ""

    @property
    def bytes(self) -> int:
        """Bytes that one access moves at an address, which must be a multiple of it; 0 where that is not known. A bulk
        copy counts as 16, the unit of its sizes and addresses."""
        return (type_width(self.type) or 0) // 8 * self.count


class Roles(Struct):
    """What one value is to the code, as it is being found; the fields are those of ``usage.Use``."""

    pointer: bool = False
    address: bool = False
    as_float: bool = False
    as_integer: bool = False
    escaped: bool = False
    stored: bool = False
    bound: bool = False
    guard: bool = False
    loop: bool = False
    divisor: bool = False
    factor: bool = False
    stride: bool = False
    base: bool = False
    handle: bool = False
    tensormap: bool = False
    accesses: set[Access] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    elements: set[str] = field(default_factory=set)
    loads: set[Load] = field(default_factory=set)


def roles_of(flow: Flow) -> tuple[list[Roles], dict[int, Roles]]:
    """The roles of each token of ``flow``, and of the parameters whose own address is used."""
    reader = _Reader(flow)
    for frame in flow.frames:
        for record in frame.records:
            reader.read(record)
        reader.branches(frame)
    reader.finish()
    return reader.roles, reader.whole


class _Reader:
    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.state = flow.graph.state
        self.roles = [Roles() for _ in flow.graph.tokens]
        self.whole: dict[int, Roles] = {}
        self._elements: Elements | None = None

    def _of(self, bits: int, wanted: int) -> Iterator[Roles]:
        return (self.roles[number] for number in numbers(bits, wanted))

    def read(self, record: Record) -> None:
        """Note what one instruction says."""
        state = self.state
        if record.bases:
            for effect, node in record.bases:
                self._base(record, effect, node)
            if self._is_access(record):
                self._guards(record)
        for node in record.coords:
            for roles in self._of(state[node], PART):
                roles.address = True
            for variable in self.flow.places.get(node, ()):
                if variable.param >= 0:
                    self.whole.setdefault(variable.param, Roles()).handle = True  # a sampler
        if any(state[node] for _, node in record.values):
            self._values(record)
            self._arithmetic(record)
        if record.op.opcode in ("ld", "ldu"):
            self._reloads(record)

    # --- addresses ---

    def _base(self, record: Record, effect: Effect, node: int) -> None:
        bits = self.state[node]
        if bits:
            tile = effect.opcode.endswith(".tensor")  # of which the map is only read
            kind = "load" if tile and effect.kind != "hint" else effect.kind
            access = Access(kind, effect.space, effect.type, effect.count, effect.opcode)
            for roles in self._of(bits, HELD):
                roles.pointer |= not effect.handle
                roles.handle |= effect.handle
            for roles in self._of(bits, PART):
                roles.address |= not effect.handle
                roles.accesses.add(access)
            for roles in self._of(bits, TIMES):
                roles.stride = True
            self._begin(bits, effect)
            self._element(record, effect, bits)
            self._stored(record, effect)
        for variable in self.flow.places.get(node, ()):
            if variable.param >= 0:
                self._map(effect, variable.param)

    def _begin(self, bits: int, effect: Effect) -> None:
        """Of an address that is a sum, the terms that may be what it began as; the only one of eight bytes is."""
        tokens = self.flow.graph.tokens
        terms = [] if effect.handle else [number for number in numbers(bits, BASE) if tokens[number].size in (0, 8)]
        for number in terms:
            self.roles[number].base = True
        if len(terms) == 1 and tokens[terms[0]].size:
            self.roles[terms[0]].pointer |= tokens[terms[0]] != FOREIGN

    def _map(self, effect: Effect, param: int) -> None:
        """An instruction on the memory of a parameter: a tensor map, a texture, or nothing that can be followed."""
        roles = self.whole.setdefault(param, Roles())
        if effect.opcode.endswith(".tensor"):
            roles.tensormap = True
            roles.accesses.add(Access(effect.kind, effect.space, "", 1, effect.opcode))
        elif effect.handle:
            roles.handle = True
            roles.accesses.add(Access(effect.kind, effect.space, effect.type, effect.count, effect.opcode))
        elif effect.kind != "hint" and not (effect.kind == "load" and not effect.opcode):
            roles.escaped = True

    def _element(self, record: Record, effect: Effect, bits: int) -> None:
        if effect.opcode or effect.kind not in ("load", "store", "atomic"):
            return
        if effect.type in FLOATS:
            element = FLOATS[effect.type]
        else:
            if self._elements is None:
                self._elements = Elements(self.flow)
            element = self._elements.of(record, effect.type)
        for roles in self._of(bits, PART):
            roles.elements.add(element)

    def _stored(self, record: Record, effect: Effect) -> None:
        """What is stored through a parameter is in global memory, whatever else the address may be."""
        if effect.kind in ("store", "atomic"):
            for _, node in record.values:
                self.state[self.flow.data] |= self.state[node]

    def _guards(self, record: Record) -> None:
        """A comparison that decides whether memory is accessed, or how much."""
        sizes = [node for place, node in record.values if place > 2 and record.op.opcode == "cp"]
        for node in (record.guard, *record.predicates, *sizes):
            if node >= 0:
                for roles in self._of(self.state[node], TEST):
                    roles.guard = True

    # --- values ---

    def _values(self, record: Record) -> None:
        opcode, types = record.op.opcode, record.shape.types
        for place, node in record.values:
            bits = self.state[node]
            if not bits:
                continue
            kind = (types[place] if place < len(types) else None) or ""
            for roles in self._of(bits, HELD):
                if opcode == "cvta" or record.op.mods.get("field") == "global_address":
                    roles.pointer = True
                elif kind[:1] in ("f", "e") or kind.startswith("bf"):
                    roles.as_float = True
                elif kind[:1] in ("u", "s") and opcode not in _MOVES:
                    roles.as_integer = True
                if kind in FLOATS or (opcode in _SIGNED and kind[:1] in ("s", "u")):
                    roles.types.add(kind)

    def _arithmetic(self, record: Record) -> None:
        op = record.op
        if op.opcode in _COMPARES:
            self._mark("bound", (node for _, node in record.values))
        elif op.opcode in ("div", "rem"):
            self._mark("divisor", (node for place, node in record.values if place == 2))
        elif op.opcode in _PRODUCTS and all(isinstance(each, Reg | Special) for each in op.operands[1:3]):
            self._mark("factor", (node for place, node in record.values if place < 3))
        elif op.opcode == "wmma" and record.bases:
            strides = [node for place, node in record.values if place > 1 and place == len(op.operands) - 1]
            self._mark("factor", strides)  # rows lie so many elements apart
            self._mark("stride", strides)

    def _mark(self, name: str, nodes: Iterator[int] | list[int]) -> None:
        for node in nodes:
            for roles in self._of(self.state[node], NEAR):
                setattr(roles, name, True)

    def _reloads(self, record: Record) -> None:
        """As what a value that was kept in memory is loaded again."""
        kind = record.op.mods["type"]
        for node in record.targets:
            for number in numbers(self.state[node], HELD):
                token = self.flow.graph.tokens[number]
                if type_width(kind) == 8 * token.size:
                    self.roles[number].loads.add(Load(token.offset, token.size, kind))

    # --- branches ---

    def branches(self, frame: Frame) -> None:
        """Comparisons that a loop goes on by, and such as pass over accesses to memory."""
        guarded = []
        ends: list[tuple[int, int]] = []
        for index, op in enumerate(frame.code.ops):
            target = _target(frame.code, op)
            if target is None:
                continue
            if target <= index:
                ends.append((target, index))
            if op.guard is not None:
                bits = self.state[frame.nodes[op.guard.register]]
                if bits:
                    guarded.append((index, target, bits))
        if guarded:
            inner, touched = _innermost(ends, len(frame.code.ops)), self._accesses(frame)
            for index, target, bits in guarded:
                for roles in self._of(bits, TEST):
                    roles.loop |= target <= index or target > inner[index] >= 0
                    roles.guard |= target > index and touched[_joined(frame.code, target)] > touched[index]

    def _accesses(self, frame: Frame) -> list[int]:
        """For each instruction how many before it access memory that is not the thread's own."""
        accesses = {id(record.op) for record in frame.records if self._is_access(record)}
        counts = [0]
        for op in frame.code.ops:
            counts.append(counts[-1] + (id(op) in accesses))
        return counts

    def _is_access(self, record: Record) -> bool:
        own = self.flow.places
        return any(effect.kind != "other" and (self.state[node] or not own.get(node)) for effect, node in record.bases)

    # --- what has left ---

    def finish(self) -> None:
        """Values that are written to memory, and such as go where they are not followed.

        Of a number of eight bytes in memory, or half of one, nothing tells that nobody uses it as an address.
        """
        for number in numbers(self.state[self.flow.lost], PART):
            self.roles[number].escaped = True
        data = self.state[self.flow.data]
        held = set(numbers(data, HELD))
        for number in numbers(data, PART):
            roles = self.roles[number]
            roles.stored = True
            if roles.pointer or (number in held and self._may_be_address(number)):
                roles.escaped = True

    def _may_be_address(self, number: int) -> bool:
        token = self.flow.graph.tokens[number]
        loads = self.flow.loads.get(token, set()) | {load.type for load in self.roles[number].loads}
        if self.roles[number].as_float or any(kind[0] == "f" for kind in loads):
            return False
        return token.size in (0, 8) or token not in self.flow.loads  # which was taken out of a wider one


def _target(code: Code, op: Op) -> int | None:
    """Where an instruction branches to: past all, if it ends; None if it is no branch."""
    if op.opcode in ("ret", "exit"):
        return len(code.ops)
    label = op.operands[0] if op.opcode == "bra" and op.operands else None
    return code.labels[label.name] if isinstance(label, Label) else None


def _joined(code: Code, target: int) -> int:
    """Where the two ways of a branch forward to ``target`` meet again: there, unless the other way leaps over what
    follows, or ends."""
    last = code.ops[target - 1]
    leap = _target(code, last) if last.guard is None else None
    return max(target, leap or 0)


def _innermost(loops: list[tuple[int, int]], count: int) -> list[int]:
    """For each instruction the end of the shortest loop around it, -1 where there is none; a loop is what lies between
    a branch backwards and its target."""
    ends = [-1] * count
    for start, end in sorted(set(loops), key=lambda loop: loop[0] - loop[1]):
        ends[start : end + 1] = [end] * (end + 1 - start)
    return ends
