"""From resolved code to one control-flow graph: calls inlined, registers made cells, variables given places.

A :class:`Program` holds the blocks of an entry and of every function it reaches. A *cell* is one scalar register of
one inlined instance; it is the unit that ``flow`` reasons about and that ``lower`` gives storage.

May import ``ptx`` and ``errors``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from teenycli.devices.cpu.layout import FIRST_BUFFER, FIRST_VARIABLE, ID_SHIFT, LOCAL_ID, PARAM_ID, SHARED_ID
from teenycli.devices.cpu.unsupported import place_of, unsupported
from teenycli.errors import Place
from teenycli.ptx import code_of
from teenycli.ptx.code import Code, Mem, Op, Operand, Pair, Reg, Register, Special, Symbol, Table, Vec
from teenycli.ptx.isa import Role
from teenycli.ptx.layout import layout, layout_size
from teenycli.ptx.model import Function, Init, Module, Space, SymbolInit, Variable

#: Most instructions a kernel may have after inlining.
INLINE_LIMIT = 400_000


@dataclass(eq=False, slots=True)
class Cell:
    """A scalar register of one inlined instance. ``type`` is the PTX register's."""

    name: str
    type: str
    index: int = 0


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a variable lies: a window or a variable's own id, and the offset in it."""

    id: int
    offset: int

    @property
    def address(self) -> int:
        return self.id << ID_SHIFT | self.offset


class Scope:
    """One inlined instance of a function: its registers' cells and its variables' places."""

    def __init__(self, program: Program, code: Code) -> None:
        self.program = program
        self.code = code
        self.cells: dict[tuple[Register, str | None], Cell] = {}
        self.formals: dict[int, tuple[Scope, Variable]] = {}
        self.places: dict[int, Placed] = {}
        #: CC.CF, the carry flag.
        self.carry = Cell("CC.CF", "pred")

    def cell(self, reg: Reg) -> Cell:
        key = (reg.register, reg.part if reg.register.vector > 1 else None)
        found = self.cells.get(key)
        if found is None:
            suffix = f".{reg.part}" if key[1] else ""
            found = self.cells[key] = Cell(reg.register.name + suffix, reg.register.type)
        return found

    def place(self, variable: Variable) -> Placed:
        """The place of a variable named in this instance."""
        if id(variable) in self.formals:
            scope, actual = self.formals[id(variable)]
            return scope.place(actual)
        found = self.places.get(id(variable))
        if found is None:
            found = self.places[id(variable)] = self.program.allocate(variable)
        return found


@dataclass(slots=True)
class Inst:
    """An instruction in its instance. ``guard`` is None where control flow has taken it over."""

    op: Op
    scope: Scope
    guard: Reg | None
    site: int = 0


@dataclass(frozen=True, slots=True)
class Move:
    """A value handed over by a call: from an operand of one instance to a register or variable of another."""

    target: Reg | Placed
    target_scope: Scope
    source: Operand | Placed
    source_scope: Scope
    type: str


@dataclass(slots=True)
class Handover:
    """The moves of one call, in or out."""

    inst: Inst
    moves: tuple[Move, ...]


Step = Inst | Handover


@dataclass(eq=False, slots=True)
class Block:
    """A basic block. ``kind`` says how it ends: ``jump``, ``branch`` (taken, fall-through), ``switch``, ``exit``,
    ``suspend`` (on ``last``, then goes on to its target) or ``trap``."""

    steps: list[Step] = field(default_factory=list)
    kind: str = ""
    last: Inst | None = None
    targets: list[Block] = field(default_factory=list)
    index: int = -1
    #: Whether it ends in a back edge of a loop that may wait for another thread.
    spins: bool = False

    @property
    def is_bare_exit(self) -> bool:
        return self.kind == "exit" and not self.steps


@dataclass(frozen=True, slots=True)
class Site:
    """Where an instruction stands, for messages: PTX line, ``.loc`` as file, line, column, function, text."""

    line: int
    column: int
    source: tuple[str, int, int] | None
    function: str
    text: str


#: Instructions at which a warp stops until others have come.
SUSPENDING = frozenset({"bar", "barrier"})
_NOT_WAITING = frozenset({"arrive", "warp"})
_ENDING = frozenset({"ret", "exit", "trap", "brx", "call"})


def suspends(op: Op) -> bool:
    return op.opcode in SUSPENDING and not _NOT_WAITING & set(op.mods.values()) and "cluster" not in op.mods.values()


class Program:
    """The whole of what an entry runs.

    ``shared_static``, ``local_size`` in bytes; ``variables`` are the module's own, by id.
    """

    def __init__(self, module: Module, entry: Function, sm: int) -> None:
        self.module = module
        self.entry = entry
        self.shared_static = 0
        self.local_size = 0
        self.variables: dict[int, Variable] = {}
        self.symbols: dict[str, Placed] = {}
        slots = layout(entry, sm)
        self.params: dict[int, int] = {id(slot.param): slot.offset for slot in slots}
        self.param_bytes = layout_size(slots)
        self.sites: list[Site] = []
        self.blocks: list[Block] = []
        self.reached: list[Function] = []
        self.count = 0
        self._exit = Block(kind="exit")
        self._shared: dict[int, Placed] = {}
        self._extern_shared: set[int] = set()
        builder = _Builder(self)
        self.start = builder.build(entry)
        self._place_initialised()
        self.dynamic_offset = (self.shared_static + 127) // 128 * 128 if self.shared_static else 0

    # --- variables -------------------------------------------------------------------------------------------

    def allocate(self, variable: Variable) -> Placed:
        """Give a variable its place, once per module, CTA or instance as its space has it."""
        if variable.space is Space.SHARED:
            return self._place_shared(variable)
        if variable.space is Space.PARAM and id(variable) in self.params:
            return Placed(PARAM_ID, self.params[id(variable)])
        if variable.space in (Space.LOCAL, Space.PARAM):
            start = -(-self.local_size // variable.align) * variable.align
            self.local_size = start + variable.size
            return Placed(LOCAL_ID, start)
        return self.symbol(variable)

    def _place_initialised(self) -> None:
        """Give ids to variables that only initialisers name."""
        named = {v.name: v for v in self.module.variables}
        pending = list(self.variables.values())
        while pending:
            fresh = [n for n in _symbols_in(pending.pop().init) if n in named and n not in self.symbols]
            places = [self.symbol(named[n]) for n in fresh if named[n].space in (Space.GLOBAL, Space.CONST)]
            pending += [self.variables[place.id] for place in places]

    def symbol(self, variable: Variable) -> Placed:
        """The place of a module-level ``.global`` or ``.const`` variable."""
        definition = next(
            (v for v in self.module.variables if v.name == variable.name and v.linking != "extern"), variable
        )
        found = self.symbols.get(definition.name)
        if found is None:
            number = FIRST_VARIABLE + len(self.variables)
            if number >= FIRST_BUFFER:
                raise unsupported(self.module, f"more than {FIRST_BUFFER - FIRST_VARIABLE} module variables", None)
            found = self.symbols[definition.name] = Placed(number, 0)
            self.variables[number] = definition
        return found

    def _place_shared(self, variable: Variable) -> Placed:
        key = id(variable)
        found = self._shared.get(key)
        if found is None:
            if variable.linking == "extern" or not variable.size:
                # Dynamic shared memory begins where the static part ends, which is known only at the end.
                found = Placed(SHARED_ID, DYNAMIC)
            else:
                start = -(-self.shared_static // variable.align) * variable.align
                self.shared_static = start + variable.size
                found = Placed(SHARED_ID, start)
            self._shared[key] = found
        return found

    def is_entry_param(self, scope: Scope, mem: Mem) -> bool:
        """Whether an address in param space is one of the entry's parameters, alike for all lanes."""
        if isinstance(mem.base, Variable):
            return scope.place(mem.base).id == PARAM_ID
        return scope.code.function.is_entry

    def resolve_dynamic(self, place: Placed) -> Placed:
        """``place`` with the start of dynamic shared memory put in."""
        if place.id == SHARED_ID and place.offset >= DYNAMIC:
            return Placed(SHARED_ID, self.dynamic_offset + place.offset - DYNAMIC)
        return place

    def where(self, op: Op | None) -> Place:
        """The place of an instruction in the PTX text."""
        return place_of(self.module, op)

    # --- sites -----------------------------------------------------------------------------------------------

    def site(self, op: Op, code: Code) -> int:
        source = None
        if op.loc is not None:
            files = self.module.files
            name = code.files.get(op.loc[0]) or files.get(op.loc[0]) or f"file {op.loc[0]}"
            source = (name, op.loc[1], op.loc[2])
        self.sites.append(Site(op.at.line, op.at.column, source, code.function.name, spelled(op)))
        return len(self.sites) - 1


def _symbols_in(init: Init | None) -> Iterator[str]:
    if isinstance(init, SymbolInit):
        yield init.name
    elif isinstance(init, tuple):
        for item in init:
            yield from _symbols_in(item)


#: Stands for the offset of dynamic shared memory until the static part is complete.
DYNAMIC = 1 << 32


def spelled(op: Op) -> str:
    """Opcode and modifiers, as the table's form orders them."""
    return ".".join((op.opcode, *(op.mods[slot.name] for slot in op.form.modifiers if slot.name in op.mods)))


class _Builder:
    """Cuts bodies into blocks and inlines calls."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.module = program.module
        self.current = Block()
        self.stack: list[str] = []

    def build(self, entry: Function) -> Block:
        start = self.current
        code = code_of(self.module, entry)
        self._body(code, Scope(self.program, code), self.program._exit)
        return start

    def _body(self, code: Code, scope: Scope, end: Block) -> None:
        """Append the blocks of one instance; every ``ret`` goes to ``end``."""
        function = code.function
        if function not in self.program.reached:
            self.program.reached.append(function)
        self.program.count += len(code.ops)
        if self.program.count > INLINE_LIMIT:
            raise unsupported(self.module, f"more than {INLINE_LIMIT} instructions once calls are inlined", None)
        self.stack.append(function.name)
        at: dict[int, list[str]] = {}
        for name, index in code.labels.items():
            at.setdefault(index, []).append(name)
        blocks: dict[str, Block] = {name: Block() for name in code.labels}
        for index, op in enumerate(code.ops):
            for name in at.get(index, ()):
                self._continue(blocks[name])
            self._op(op, code, scope, blocks, end)
        for name in at.get(len(code.ops), ()):
            self._continue(blocks[name])
        self._finish("jump", None, [end])
        self.stack.pop()

    def _finish(self, kind: str, last: Inst | None, targets: list[Block]) -> None:
        if not self.current.kind:
            self.current.kind, self.current.last, self.current.targets = kind, last, targets

    def _continue(self, block: Block) -> None:
        """Fall into ``block`` and go on there."""
        if self.current is not block:
            self._finish("jump", None, [block])
        self.current = block

    def _op(self, op: Op, code: Code, scope: Scope, blocks: Mapping[str, Block], end: Block) -> None:
        inst = Inst(op, scope, op.guard, self.program.site(op, code))
        for operand in op.operands:
            # Where dynamic shared memory begins, and what initialisers name, depends on every variable: places now.
            for variable in variables_in(operand):
                scope.place(variable)
        if op.opcode == "bra":
            label = op.operands[0]
            target = blocks[label.name]  # type: ignore[union-attr]
            if inst.guard is None:
                self._finish("jump", inst, [target])
                self.current = Block()
            else:
                after = Block()
                self._finish("branch", inst, [target, after])
                self.current = after
        elif op.opcode in _ENDING or suspends(op):
            self._ending(inst, blocks, end)
        else:
            self.current.steps.append(inst)

    def _ending(self, inst: Inst, blocks: Mapping[str, Block], end: Block) -> None:
        """An instruction that ends a block; a guard on it becomes a branch around it."""
        after = Block()
        opcode = inst.op.opcode
        if inst.guard is not None:
            leaves = {"ret": end, "exit": self.program._exit}.get(opcode)
            body = leaves or Block()
            self._finish("branch", inst, [body, after])
            self.current = after if leaves else body
            if leaves:
                return
            inst = replace(inst, guard=None)
        if opcode == "ret":
            self._finish("jump", inst, [end])
        elif opcode == "exit":
            self._finish("jump", inst, [self.program._exit])
        elif opcode == "trap":
            self._finish("trap", inst, [])
        elif opcode == "brx":
            table = inst.op.operands[1]
            assert isinstance(table, Table)
            self._finish("switch", inst, [blocks[label.name] for label in table.labels])
        elif opcode == "call":
            self._call(inst, after)
        else:
            self._finish("suspend", inst, [after])
            if any(destinations(inst.op)):
                after.steps.append(inst)
        self._continue(after)

    # --- calls -----------------------------------------------------------------------------------------------

    def _call(self, inst: Inst, after: Block) -> None:
        call = inst.op.call
        assert call is not None
        if isinstance(call.target, Reg):
            raise unsupported(self.module, "an indirect call", inst.op)
        function = self._definition(call.target)
        if function.body is None:
            if function.name == "__assertfail":
                self._finish("trap", inst, [])
                return
            raise unsupported(self.module, f"a call of '{function.name}', which has no body here,", inst.op)
        if function.name in self.stack:
            raise unsupported(self.module, f"recursion ('{function.name}' reaches itself)", inst.op)
        code = code_of(self.module, function)
        scope = Scope(self.program, code)
        registers = {r.name: r for r in code.registers}
        moves = self._link(inst, scope, registers, function.params, call.args, incoming=True)
        results = self._link(inst, scope, registers, function.returns, call.returns, incoming=False)
        if moves:
            self.current.steps.append(Handover(inst, moves))
        end = Block()
        self._body(code, scope, end)
        self.current = end
        if results:
            self.current.steps.append(Handover(inst, results))
        self._continue(after)

    def _definition(self, function: Function) -> Function:
        name = self.module.aliases.get(function.name, function.name)
        return next((f for f in self.module.functions if f.name == name and f.body is not None), function)

    def _link(
        self,
        inst: Inst,
        scope: Scope,
        registers: Mapping[str, Register],
        formals: tuple[Variable, ...],
        actuals: tuple[Operand, ...],
        *,
        incoming: bool,
    ) -> tuple[Move, ...]:
        """Tie a call's arguments or results to the function's own: a ``.param`` variable becomes the caller's."""
        moves = []
        for formal, actual in zip(formals, actuals, strict=False):
            if isinstance(actual, Symbol) and isinstance(actual.target, Variable) and formal.space is Space.PARAM:
                scope.formals[id(formal)] = (inst.scope, actual.target)
                continue
            inner: Reg | Placed = scope.place(formal) if formal.space is Space.PARAM else Reg(registers[formal.name])
            outer: Operand | Placed = actual
            if isinstance(actual, Symbol) and isinstance(actual.target, Variable):
                outer = inst.scope.place(actual.target)
            if incoming:
                moves.append(Move(inner, scope, outer, inst.scope, formal.type))
            else:
                assert isinstance(outer, (Reg, Placed))
                moves.append(Move(outer, inst.scope, inner, scope, formal.type))
        return tuple(moves)


# --- what an instruction reads and writes --------------------------------------------------------------------------


def registers_in(operand: Operand | None) -> Iterator[Reg]:
    """Every register use inside an operand."""
    if isinstance(operand, Reg):
        if operand.register.vector > 1 and operand.part is None:
            yield from (replace(operand, part=part) for part in "xyzw"[: operand.register.vector])
        else:
            yield operand
    elif isinstance(operand, Vec):
        for item in operand.items:
            yield from registers_in(item)
    elif isinstance(operand, Pair):
        yield from registers_in(operand.first)
        yield from registers_in(operand.second)
    elif isinstance(operand, Mem):
        if isinstance(operand.base, Reg):
            yield operand.base
        for item in operand.coords:
            yield from registers_in(item)


def variables_in(operand: Operand | None) -> Iterator[Variable]:
    """Every variable whose address is used inside an operand."""
    base = operand.base if isinstance(operand, Mem) else operand.target if isinstance(operand, Symbol) else None
    if isinstance(base, Variable):
        yield base
    elif isinstance(operand, Vec):
        for item in operand.items:
            yield from variables_in(item)


def specials_in(operand: Operand | None) -> Iterator[Special]:
    if isinstance(operand, Special):
        yield operand
    elif isinstance(operand, Vec):
        for item in operand.items:
            yield from specials_in(item)


def destinations(op: Op) -> tuple[bool, ...]:
    """For each operand, whether the instruction writes it."""
    placed = op.form.place(op.mods, len(op.operands)) or tuple(range(len(op.operands)))
    return tuple(op.form.operands[i].role is Role.DST if i < len(op.form.operands) else False for i in placed)


_CARRY_IN = frozenset({"addc", "subc", "madc"})


def cells_written(step: Step) -> list[Cell]:
    if isinstance(step, Handover):
        return [m.target_scope.cell(m.target) for m in step.moves if isinstance(m.target, Reg)]
    cells = []
    for operand, written in zip(step.op.operands, destinations(step.op), strict=True):
        if written:
            cells += [step.scope.cell(reg) for reg in registers_in(operand)]
    if "cc" in step.op.mods:
        cells.append(step.scope.carry)
    return cells


def cells_read(step: Step) -> list[Cell]:
    """Cells an instruction reads, its guard's among them."""
    if isinstance(step, Handover):
        return [m.source_scope.cell(m.source) for m in step.moves if isinstance(m.source, Reg)]
    cells = []
    for operand, written in zip(step.op.operands, destinations(step.op), strict=True):
        if not written:
            cells += [step.scope.cell(reg) for reg in registers_in(operand)]
    if step.guard is not None:
        cells.append(step.scope.cell(step.guard))
    if step.op.opcode in _CARRY_IN:
        cells.append(step.scope.carry)
    return cells
