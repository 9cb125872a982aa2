"""The ways of values through an entry and all that it calls: registers, memory of the thread and the block, calls.

Without regard to order. A function is taken anew for each call of it, so that two calls do not mix what they pass; one
that calls itself, and one too large to be repeated, once. What goes where it cannot be followed (a function without a
body or called by its address, memory at an address that is not known) is at ``Flow.lost``.

May import ``errors`` and the rest of ``ptx`` but ``roles`` and ``usage``.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from teenycli.errors import TeenyError
from teenycli.ptx.code import Call, Code, Mem, Op, Operand, Pair, Reg, Register, Special, Symbol, Vec
from teenycli.ptx.effects import Effect, effects_of
from teenycli.ptx.graph import (
    ADD,
    COMPARE,
    COPY,
    EITHER,
    FOREIGN,
    LOGIC,
    MIX,
    MULTIPLY,
    PREDICATE,
    SCALE,
    SHIFT,
    SLICE,
    Edge,
    Graph,
    Token,
)
from teenycli.ptx.isa import Role
from teenycli.ptx.memory import Key, Meeting, Memory, Stored
from teenycli.ptx.model import Float, Function, Int, Space, Variable, type_width

#: Opcodes that pass a value on unchanged.
COPIES = frozenset({"mov", "cvta", "selp", "shfl", "mapa"})
#: Opcodes that leave a value recognisable when their other operands are constants: ``n - 1``, ``4 * n``, ``n / 32``.
_SCALES = frozenset({
    "cvt", "add", "sub", "mul", "mad", "div", "rem", "shl", "shr", "and", "or", "min", "max", "neg", "bfe", "shf",
})  # fmt: skip
_LOGIC = frozenset({"and", "or", "xor", "not", "lop3"})
#: Opcodes whose result holds nothing of what went in but by way of memory.
_OPAQUE = frozenset({
    "ld", "ldu", "st", "atom", "red", "tex", "tld4", "txq", "suld", "suq", "mbarrier", "vote", "activemask", "testp",
    "isspacep", "match", "ldmatrix", "multimem", "clusterlaunchcontrol", "istypep", "elect", "getctarank",
})  # fmt: skip
#: All functions together are repeated up to so many instructions.
_BUDGET = 12_000
#: So many offsets of a variable are told apart in one register.
_OFFSETS = 32
_VARYING, _STEADY = (Reg, Special), (Reg, Int, Float)
_TRACKED = frozenset({Space.LOCAL, Space.SHARED, Space.PARAM})


class Shape(Struct):
    """What the operands of an instruction are: whether a result, and of which type."""

    results: tuple[bool, ...]
    types: tuple[str | None, ...]


class Record(Struct):
    """An instruction with the nodes of its operands: ``values`` (place in the operands, node) that it reads, predicates
    aside; ``bases`` of its addresses with the effect on what is there; ``coords`` within brackets."""

    op: Op
    shape: Shape
    values: list[tuple[int, int]]
    predicates: list[int]
    targets: list[int]
    bases: list[tuple[Effect, int]] = field(default_factory=list)
    coords: list[int] = field(default_factory=list)
    guard: int = -1


class Touch(Struct):
    """Bytes that a load gives to ``node``, or a store takes from it, ``offset`` behind an address. A ``size`` of 0 is
    more than one register holds."""

    is_load: bool
    space: str
    type: str
    offset: int
    size: int
    node: int


class Frame:
    """A function for one call of it. ``chain`` has the frames of the functions that are being called."""

    def __init__(self, code: Code, index: int, chain: dict[str, Frame]) -> None:
        self.code = code
        self.index = index
        self.chain = {**chain, code.function.name: self}
        self.nodes: dict[Register, int] = {}
        self.records: list[Record] = []

    def formal(self, variable: Variable) -> Register | None:
        """The register that a parameter or result in register space is."""
        return next((r for r in reversed(self.code.registers) if r.name == variable.name), None)


class Flow:
    """The graph of an entry, spread. ``loads`` has what is loaded as each token by type; ``places`` the variables whose
    addresses a node may hold, with offsets (None where only the run knows)."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.graph = Graph()
        #: What cannot be followed flows into the first, what is written to global memory into the second.
        self.lost, self.data = self.graph.new(), self.graph.new()
        self.memory = Memory(self.graph.new, self._join)
        self.frames: list[Frame] = []
        self.params = {id(param): index for index, param in enumerate(code.function.params)}
        self.lost_params: set[int] = set()
        self.places: dict[int, dict[Stored, set[int | None]]] = defaultdict(dict)
        self.loads: dict[Token, set[str]] = defaultdict(set)
        self.touches: dict[int, list[Touch]] = defaultdict(list)
        self._shapes: dict[tuple[int, int, int], Shape] = {}
        self._moving: deque[tuple[int, Stored, int | None]] = deque()
        self._unknown_calls = False
        self._once: dict[str, Frame] = {}
        self._size = 0
        self._frame(code, {})
        for frame in self.frames:  # grows while it is read
            for op in frame.code.ops:
                self._op(frame, op)
        self._settle()
        self._give_up()
        self._settle()
        self.graph.spread()

    # --- nodes and edges ---

    def _frame(self, code: Code, chain: dict[str, Frame]) -> Frame:
        frame = Frame(code, len(self.frames), chain)
        self.frames.append(frame)
        self._size += len(code.ops)
        return frame

    def node(self, frame: Frame, register: Register) -> int:
        """The node of a register."""
        known = frame.nodes.get(register)
        if known is None:
            known = frame.nodes[register] = self.graph.new()
        return known

    def _edge(self, source: int, edge: Edge) -> None:
        self.graph.edges[source].append(edge)
        for variable, offsets in self.places.get(source, {}).items():
            for offset in tuple(offsets):
                self._pass(edge, variable, offset)

    def _join(self, source: int, target: int, how: Meeting, store: Key, load: Key) -> None:
        if how.whole:
            self._edge(source, (target, EITHER if None in (store[0], load[0]) else COPY, 0))
        elif how.part:
            self._edge(source, (target, SLICE, (how.offset, load[1], store[1])))
        else:
            self._edge(source, (target, MIX, None))

    def _shape(self, op: Op) -> Shape:
        """Of one form with one set of modifiers, which are one object for all instructions spelled alike."""
        key = (id(op.form), id(op.mods), len(op.operands))
        shape = self._shapes.get(key)
        if shape is None:
            specs = op.specs
            results = tuple(spec.role is Role.DST for spec in specs)
            shape = Shape(results, tuple(op.form.type_of(spec, op.mods) for spec in specs))
            self._shapes[key] = shape
        return shape

    # --- instructions ---

    def _op(self, frame: Frame, op: Op) -> None:
        if op.call is not None:
            self._call(frame, op.call)
            return
        record = Record(op, self._shape(op), [], [], [])
        if op.guard is not None:
            record.guard = self.node(frame, op.guard.register)
        addressed = False
        for place, operand in enumerate(op.operands):
            if isinstance(operand, Mem):
                addressed = True
                record.coords += [node for item in operand.coords for node in self._coords(frame, item)]
            elif isinstance(operand, Symbol):
                self._symbol(frame, op, operand)
            else:
                self._registers(frame, record, place, operand)
        frame.records.append(record)
        if op.opcode == "alloca":
            self._arrive(record.targets[0], self.memory.variable((frame.index, id(op)), Space.LOCAL), 0)
        if addressed:
            for effect in effects_of(op):
                self._effect(frame, record, effect)
        if record.targets:
            self._edges(record)

    def _coords(self, frame: Frame, item: Operand) -> Iterator[int]:
        """What follows the address in brackets: coordinates, the name of a sampler."""
        variable = self._variable(frame, item.target) if isinstance(item, Symbol) else None
        if variable is not None:
            yield self._address(variable, 0)
        for register in registers_in(item):
            yield self.node(frame, register)

    def _address(self, variable: Stored, offset: int) -> int:
        """A node for the address of a variable, as if a register held it."""
        node = self.graph.new()
        self._arrive(node, variable, offset)
        return node

    def _registers(self, frame: Frame, record: Record, place: int, operand: Operand | None) -> None:
        result = place < len(record.shape.results) and record.shape.results[place]
        for register in registers_in(operand):
            node = self.node(frame, register)
            if result:
                record.targets.append(node)
            elif register.type == "pred":
                record.predicates.append(node)
            else:
                record.values.append((place, node))

    def _edges(self, record: Record) -> None:
        """From what an instruction reads to its results."""
        op, opcode = record.op, record.op.opcode
        for target in record.targets:
            for node in record.predicates:
                self.graph.edges[node].append((target, PREDICATE, None))
        if opcode in ("setp", "set"):
            for target in record.targets:
                for _, node in record.values:
                    self.graph.edges[node] += [(target, COMPARE, None), (target, PREDICATE, None)]
        elif opcode == "mov" and isinstance(op.operands[0], Vec) and not isinstance(op.operands[1], Vec):
            self._unpack(record, op.operands[0])
        elif opcode not in _OPAQUE:
            for place, node in record.values:
                kind, added = self._kind(op, place, record.values)
                for target in record.targets:
                    self.graph.edges[node].append((target, kind, added))

    def _unpack(self, record: Record, lanes: Vec) -> None:
        """``mov.b64 {%r1, %r2}, %rd1``."""
        whole = (type_width(record.op.mods["type"]) or 64) // 8
        size = whole // len(lanes.items)
        targets = iter(record.targets)
        for index, lane in enumerate(lanes.items):
            if isinstance(lane, Reg):
                target = next(targets)
                for _, node in record.values:
                    self.graph.edges[node].append((target, SLICE, (index * size, size, whole)))

    def _kind(self, op: Op, place: int, values: Sequence[tuple[int, int]]) -> tuple[int, int | None]:
        """What becomes of the operand at ``place``, and what is added to it if it is an address."""
        opcode = op.opcode
        if opcode in COPIES:
            return (COPY, 0) if place == 1 or opcode in ("mov", "selp") else (MIX, None)
        if opcode in ("mul", "mad", "fma") and place < 3:
            first, second = op.operands[1:3]
            if isinstance(first, _VARYING) and isinstance(second, _VARYING):
                return MULTIPLY, None
        alone = len(values) == 1 or all(node == values[0][1] for _, node in values)
        if opcode in _SCALES and alone and all(isinstance(each, _STEADY) for each in op.operands[1:]):
            added = _added(op, place)
            return (SCALE if added is None else SHIFT), added
        if opcode == "add" or (opcode in ("sub", "mad") and place == (1 if opcode == "sub" else 3)):
            return ADD, None
        return (LOGIC if opcode in _LOGIC else MIX), None

    def _symbol(self, frame: Frame, op: Op, symbol: Symbol) -> None:
        """The address of a variable as an operand."""
        variable = self._variable(frame, symbol.target)
        result = op.operands[0]
        if variable is None:
            for register in registers_in(result):
                self.graph.seed(self.node(frame, register), FOREIGN)
            return
        exact = op.opcode in COPIES
        for register in registers_in(result):
            self._arrive(self.node(frame, register), variable, symbol.offset if exact else None)

    def _variable(self, frame: Frame, target: Variable | Function | Stored) -> Stored | None:
        """What is known of a variable's memory; None for one in global or constant memory, and for a function."""
        if not isinstance(target, Variable) or target.space not in _TRACKED:
            return None
        if frame.index == 0 and id(target) in self.params:
            return self.memory.variable((0, id(target)), Space.PARAM, self.params[id(target)])
        owner = -1 if target.space is Space.SHARED else frame.index
        return self.memory.variable((owner, id(target)), target.space)

    # --- memory ---

    def _effect(self, frame: Frame, record: Record, effect: Effect) -> None:
        mem = record.op.operands[effect.place]
        assert isinstance(mem, Mem)
        touches = list(_touches(record, effect, mem, self))
        if isinstance(mem.base, Reg):
            node = self.node(frame, mem.base.register)
            record.bases.append((effect, node))
            self.touches[node] += touches
            return
        variable = None if isinstance(mem.base, int) else self._variable(frame, mem.base)
        if variable is None:
            for touch in touches:
                self._astray(touch, self.lost)
            return
        if variable.param >= 0 and record.op.opcode not in ("ld", "ldu"):
            record.bases.append((effect, self._address(variable, mem.offset)))
        for touch in touches:
            self._touch(touch, variable, 0)

    def _touch(self, touch: Touch, variable: Stored, offset: int | None) -> None:
        """A load from, or a store to, a variable at an offset."""
        at = None if offset is None or not touch.size else offset + touch.offset
        if variable.param < 0:
            if touch.node in (self.lost, self.data):
                self._edge(variable.content, (touch.node, COPY, 0))
            elif touch.is_load:
                self._edge(self.memory.load(variable, at, touch.size), (touch.node, COPY, 0))
            else:
                self._edge(touch.node, (self.memory.store(variable, at, touch.size), COPY, 0))
        elif touch.is_load:
            token = Token(variable.param, -1, 0) if at is None else Token(variable.param, at, touch.size)
            self.graph.seed(touch.node, token)
            self.loads[token].add(touch.type)

    def _astray(self, touch: Touch, target: int) -> None:
        """A load from, or a store to, memory that is not followed."""
        if not touch.is_load:
            self._edge(touch.node, (target, COPY, 0))
        elif touch.size == FOREIGN.size and touch.node not in (self.lost, self.data):
            self.graph.seed(touch.node, FOREIGN)

    # --- addresses ---

    def _arrive(self, node: int, variable: Stored, offset: int | None) -> None:
        known = self.places[node].setdefault(variable, set())
        if len(known) >= _OFFSETS:
            offset = None
        if offset not in known and None not in known:
            known.add(offset)
            self._moving.append((node, variable, offset))

    def _pass(self, edge: Edge, variable: Stored, offset: int | None) -> None:
        target, kind, added = edge
        if kind in (COPY, EITHER, SHIFT) and isinstance(added, int) and offset is not None:
            self._arrive(target, variable, offset + added)
        elif kind not in (COMPARE, PREDICATE, MULTIPLY, SLICE):
            self._arrive(target, variable, offset if kind in (COPY, EITHER) else None)

    def _settle(self) -> None:
        """Let the addresses of variables flow until nothing changes; what is stored and loaded through them makes new
        edges as they come."""
        while self._moving:
            node, variable, offset = self._moving.popleft()
            if node in (self.lost, self.data):
                self._expose(variable)
            for edge in tuple(self.graph.edges[node]):
                self._pass(edge, variable, offset)
            for touch in self.touches.get(node, ()):
                self._touch(touch, variable, offset)

    def _expose(self, variable: Stored) -> None:
        """Something unknown has the variable's address: what it holds is lost."""
        if not variable.escaped:
            variable.escaped = True
            self._edge(variable.content, (self.lost, COPY, 0))
            if variable.param >= 0:
                self.lost_params.add(variable.param)

    def _give_up(self) -> None:
        """What is stored where no variable is known to be, and variables that may be read from there."""
        read = set()
        for node, touches in self.touches.items():
            if self.places.get(node):
                continue
            for touch in touches:
                inside = touch.space.startswith(("local", "shared", "param"))
                self._astray(touch, self.lost if inside else self.data)
                if touch.is_load and inside:
                    read.add(Space(touch.space.partition("::")[0]))
        for (owner, _), variable in tuple(self.memory.variables.items()):
            if variable.space in read or (self._unknown_calls and owner == -1):
                self._expose(variable)

    # --- calls ---

    def _call(self, frame: Frame, call: Call) -> None:
        callee = self._callee(frame, call.target)
        if callee is None:
            self._unknown_calls = True
            for operand in call.args:
                self._hand_out(frame, operand)
            return
        function = callee.code.function
        for formal, actual in zip(function.params, call.args, strict=False):
            self._bind(callee, formal, frame, actual)
        for actual in call.args[len(function.params) :]:
            self._hand_out(frame, actual)
        for formal, actual in zip(function.returns, call.returns, strict=False):
            self._give_back(callee, formal, frame, actual)

    def _callee(self, frame: Frame, target: Function | Reg) -> Frame | None:
        """The frame of a called function, of the call going on if it calls itself; None where nothing is known."""
        module = frame.code.module
        if not isinstance(target, Function) or target.body is None or module is None:
            return None
        known = frame.chain.get(target.name) or self._once.get(target.name)
        if known is not None:
            return known
        from teenycli.ptx.resolve import resolve

        try:
            code = resolve(module, target)
        except TeenyError:
            return None  # what is wrong with it is not for the caller to say
        made = self._frame(code, frame.chain)
        if self._size > _BUDGET:
            self._once[target.name] = made
        return made

    def _hand_out(self, frame: Frame, operand: Operand) -> None:
        """An argument of a function that is not known."""
        for register in registers_in(operand):
            self._edge(self.node(frame, register), (self.lost, COPY, 0))
        variable = self._variable(frame, operand.target) if isinstance(operand, Symbol) else None
        if variable is not None:
            self._expose(variable)

    def _bind(self, callee: Frame, formal: Variable, frame: Frame, actual: Operand) -> None:
        held = self._variable(callee, formal)
        given = self._variable(frame, actual.target) if isinstance(actual, Symbol) else None
        if held is None:
            register = callee.formal(formal)
            target = self.lost if register is None else self.node(callee, register)
            if given is not None:
                self._arrive(target, given, 0)
        elif given is not None:
            self.memory.mirror(given, held)
            if given.param >= 0:
                self._expose(given)
            return
        else:
            target = self.memory.store(held, 0, formal.size)
        for source in registers_in(actual):
            self._edge(self.node(frame, source), (target, COPY, 0))

    def _give_back(self, callee: Frame, formal: Variable, frame: Frame, actual: Operand) -> None:
        held = self._variable(callee, formal)
        given = self._variable(frame, actual.target) if isinstance(actual, Symbol) else None
        if held is not None and given is not None:
            self.memory.mirror(held, given)
            return
        register = callee.formal(formal) if held is None else None
        if register is not None:
            source = self.node(callee, register)
        elif held is not None:
            source = self.memory.load(held, 0, formal.size)
        else:
            return
        for target in registers_in(actual):
            self._edge(source, (self.node(frame, target), COPY, 0))
        if given is not None:
            self._edge(source, (self.memory.store(given, 0, formal.size), COPY, 0))


def _added(op: Op, place: int) -> int | None:
    """The constant that an instruction adds to its operand at ``place``; None if it does something else."""
    if op.opcode not in ("add", "sub", "or") or len(op.operands) < 3:  # LLVM adds by "or" what is aligned
        return 0 if op.opcode == "cvt" and op.form.has_slot("atype") else None
    constant = op.operands[3 - place]
    if not isinstance(constant, Int) or (op.opcode == "sub" and place == 2):
        return None
    return -constant.value if op.opcode == "sub" else constant.value


def _touches(record: Record, effect: Effect, mem: Mem, flow: Flow) -> Iterator[Touch]:
    """What an instruction loads into registers, or stores from them, at an address."""
    op = record.op
    if effect.handle or effect.opcode.endswith(".tensor"):
        return  # the operand stands for an image or a tensor map, which is no data
    size = (type_width(effect.type) or 0) // 8
    if op.opcode in ("ld", "ldu", "st", "atom", "red") and effect.kind != "other":
        if effect.kind != "store":
            for lane, node in zip(_lanes(op.operands[0]), record.targets, strict=False):
                yield Touch(True, effect.space, effect.type, mem.offset + lane * size, size, node)
        if effect.kind != "load":
            for place in dict.fromkeys(place for place, _ in record.values):
                nodes = [node for where, node in record.values if where == place]
                for lane, node in zip(_lanes(op.operands[place]), nodes, strict=False):
                    yield Touch(False, effect.space, effect.type, mem.offset + lane * size, size, node)
    elif effect.kind == "store":
        for _, node in record.values:
            yield Touch(False, effect.space, effect.type, 0, 0, node)
    elif effect.kind == "load":
        target = flow.data if op.mods.get("dst") == "global" else flow.lost
        for node in record.targets or [target]:
            yield Touch(True, effect.space, effect.type, 0, 0, node)


def _lanes(operand: Operand | None) -> list[int]:
    """The elements of a vector that are registers, 0 for a scalar."""
    if isinstance(operand, Vec):
        return [index for index, item in enumerate(operand.items) if isinstance(item, Reg)]
    return [0]


def registers_in(operand: Operand | None) -> Iterator[Register]:
    """The registers an operand names, those of an address aside."""
    if isinstance(operand, Reg):
        yield operand.register
    elif isinstance(operand, Vec):
        for item in operand.items:
            yield from registers_in(item)
    elif isinstance(operand, Pair):
        yield from registers_in(operand.first)
        yield from registers_in(operand.second)
