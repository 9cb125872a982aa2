"""A kernel as one control-flow graph: blocks of instructions, registers made cells, variables given places.

A :class:`Program` holds the blocks of an entry and of every function it reaches (``builder`` makes them). A *cell* is
one scalar register of one instance of a function; it is the unit that ``flow`` reasons about and that ``lower`` gives
storage. A function that is called for real is a :class:`Routine`: one instance, entered with a frame on the lane's
stack.

May import ``ptx`` and ``errors``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from teenycli.devices.cpu.layout import (
    FIRST_BUFFER,
    FIRST_VARIABLE,
    FUNCTION_ID,
    ID_SHIFT,
    LOCAL_ID,
    PARAM_ID,
    SHARED_ID,
)
from teenycli.devices.cpu.unsupported import place_of, unsupported
from teenycli.errors import Place
from teenycli.ptx.code import Code, Mem, Op, Operand, Pair, Reg, Register, Symbol, Vec
from teenycli.ptx.isa import Role
from teenycli.ptx.layout import layout, layout_size
from teenycli.ptx.model import Function, Init, Module, Space, SymbolInit, Triple, Variable

#: Bytes of a lane's stack for frames of routines, and of another for ``alloca``.
STACK_BYTES = 1 << 16
#: Bytes at the start of a frame: where to return to.
FRAME_HEAD = 16


class Cell(Struct, eq=False):
    """A scalar register of one inlined instance. ``type`` is the PTX register's."""

    name: str
    type: str
    index: int = 0


class Placed(Struct, frozen=True):
    """Where a variable lies: a window or a variable's own id, and the offset in it; from the frame when ``framed``."""

    id: int
    offset: int
    framed: bool = False

    @property
    def address(self) -> int:
        return self.id << ID_SHIFT | self.offset


class Scope:
    """One inlined instance of a function: its registers' cells and its variables' places."""

    def __init__(self, program: Program, code: Code, routine: Routine | None = None) -> None:
        self.program = program
        self.code = code
        #: The routine that this is, or is inlined in.
        self.routine = routine
        self.cells: dict[tuple[Register, str | None], Cell] = dict(program.common)
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
            found = self.places[id(variable)] = self.program.allocate(variable, self.routine)
        return found


class Inst(Struct):
    """An instruction in its instance. ``guard`` is None where control flow has taken it over."""

    op: Op
    scope: Scope
    guard: Reg | None
    site: int = 0


class Move(Struct, frozen=True):
    """A value handed over by a call: from an operand of one instance to a register or variable of another."""

    target: Reg | Placed
    target_scope: Scope
    source: Operand | Placed
    source_scope: Scope
    type: str


class Handover(Struct):
    """The moves of one call, in or out."""

    inst: Inst
    moves: tuple[Move, ...]


class Routine(Struct, eq=False):
    """A function that is called for real. Frames of ``size`` bytes hold its parameters, results, variables, and
    cells that a call of its own must keep. ``returns_to`` are the blocks it may go back to, by number."""

    function: Function
    #: A call of it, for what is done at its start and end.
    first: Inst
    start: Block = field(default_factory=lambda: Block())
    end: Block = field(default_factory=lambda: Block())
    size: int = FRAME_HEAD
    scope: Scope | None = None
    returns: list[int] = field(default_factory=list)
    params: list[int] = field(default_factory=list)
    returns_to: list[Block] = field(default_factory=list)

    def reserve(self, size: int, align: int) -> int:
        """Room in the frame; its offset."""
        start = -(-self.size // align) * align
        self.size = start + size
        return start

    @property
    def frame(self) -> int:
        """Bytes from one frame to the next."""
        return -(-self.size // 16) * 16


class RealCall(Struct, eq=False):
    """A call of one of ``targets``, from ``caller`` (None: code that is entered once). ``saved`` are cells that the
    call may change, with their places in the caller's frame; ``block`` makes the call, ``after`` is returned to."""

    inst: Inst
    caller: Routine | None
    block: Block
    after: Block
    targets: list[Routine] = field(default_factory=list)
    saved: list[tuple[Cell, int]] = field(default_factory=list)


class Transfer(Handover):
    """One end of a real call: ``routine`` is entered, or ``call`` left; or, of no call, a return begins."""

    call: RealCall | None = None
    routine: Routine | None = None


Step = Inst | Handover


class Block(Struct, eq=False):
    """A basic block. ``kind`` says how it ends: ``jump``, ``branch`` (taken, fall-through), ``switch``, ``exit``,
    ``suspend`` and ``meet`` (on ``last``, then goes on to its target), ``dispatch`` (an indirect call), ``return`` (of
    a routine) or ``trap``."""

    steps: list[Step] = field(default_factory=list)
    kind: str = ""
    last: Inst | None = None
    targets: list[Block] = field(default_factory=list)
    index: int = -1
    #: Whether it ends in a back edge of a loop that may wait for another thread.
    spins: bool = False
    #: Where it belongs to a loop that does nothing but wait for an mbarrier: the instruction that looks at it.
    looks: Inst | None = None
    #: The routine that it enters, for a call.
    enters: Routine | None = None

    @property
    def is_bare_exit(self) -> bool:
        return self.kind == "exit" and not self.steps


class Site(Struct, frozen=True):
    """Where an instruction stands, for messages: PTX line, ``.loc`` as file, line, column, function, text; and where
    that source was inlined, outwards."""

    line: int
    column: int
    source: tuple[str, int, int] | None
    function: str
    text: str
    inlined_at: tuple[tuple[str, int, int], ...] = ()


#: Functions without a body that the host stands in for, by the number that ``services`` knows them by.
SERVICES = {"vprintf": 0, "malloc": 1, "free": 2, "__assertfail": 3}
HEAP = frozenset({"malloc", "free"})

#: Instructions at which a warp stops until others have come.
SUSPENDING = frozenset({"bar", "barrier"})
_NOT_WAITING = frozenset({"arrive", "warp"})
_ENDING = frozenset({"ret", "exit", "trap", "brx", "call"})


def suspends(op: Op) -> bool:
    return op.opcode in SUSPENDING and not _NOT_WAITING & set(op.mods.values())


def meets(op: Op) -> bool:
    """Whether lanes of a warp wait for each other."""
    return op.opcode == "bar" and "warp" in op.mods


class Program:
    """The whole of what an entry runs.

    ``shared_static``, ``local_size`` in bytes; ``variables`` are the module's own, by id.
    """

    def __init__(self, module: Module, entry: Function, sm: int) -> None:
        self.module = module
        self.entry = entry
        #: Every lane's frame (an offset in its stack), depth of calls, end of what ``alloca`` gave, and return.
        self.frame, self.depth, self.top, self.back = (
            Register(name, type) for name, type in (("frame", "b64"), ("depth", "b32"), ("top", "b64"), ("back", "b32"))
        )
        self.common: dict[tuple[Register, str | None], Cell] = {
            (r, None): Cell(r.name, r.type) for r in (self.frame, self.depth, self.top, self.back)
        }
        self.functions: dict[str, int] = {}
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
        #: Names of :data:`SERVICES` that are called.
        self.services: set[str] = set()
        self.exit = Block(kind="exit")
        self.start = Block()
        self._shared: dict[int, Placed] = {}

    @property
    def dynamic_offset(self) -> int:
        """Where dynamic shared memory begins, once every variable has its place."""
        return (self.shared_static + 127) // 128 * 128 if self.shared_static else 0

    def common_cell(self, register: Register) -> Cell:
        return self.common[register, None]

    # --- variables -------------------------------------------------------------------------------------------

    def allocate(self, variable: Variable, routine: Routine | None) -> Placed:
        """Give a variable its place, once per module, CTA or instance as its space has it."""
        if variable.space is Space.SHARED:
            return self._place_shared(variable)
        if variable.space is Space.PARAM and id(variable) in self.params:
            return Placed(PARAM_ID, self.params[id(variable)])
        if variable.space in (Space.LOCAL, Space.PARAM):
            if routine is not None:
                return self.framed(routine.reserve(variable.size, variable.align))
            return Placed(LOCAL_ID, self.reserve(variable.size, variable.align))
        return self.symbol(variable)

    def reserve(self, size: int, align: int) -> int:
        """Room in each lane's local memory; its offset."""
        start = -(-self.local_size // align) * align
        self.local_size = start + size
        return start

    def framed(self, offset: int) -> Placed:
        """A place in the frame of a routine."""
        return Placed(LOCAL_ID, self.stack + offset, framed=True)

    @cached_property
    def stack(self) -> int:
        """Where the frames of routines lie in a lane's local memory."""
        return self.reserve(STACK_BYTES, 16)

    @cached_property
    def alloca_stack(self) -> int:
        """Where ``alloca`` takes memory from."""
        return self.reserve(STACK_BYTES, 16)

    def function_address(self, function: Function) -> int:
        """The address of a function: a number that only an indirect call understands."""
        name = self.module.aliases.get(function.name, function.name)
        return self.functions.setdefault(name, FUNCTION_ID << ID_SHIFT | 16 * (len(self.functions) + 1))

    def place_initialised(self) -> None:
        """Give ids to variables, and addresses to functions, that only initialisers name."""
        named = {v.name: v for v in self.module.variables}
        functions = {f.name: f for f in self.module.functions}
        pending = list(self.variables.values())
        while pending:
            names = list(_symbols_in(pending.pop().init))
            for name in names:
                if name in functions:
                    self.function_address(functions[name])
            fresh = [n for n in names if n in named and n not in self.symbols]
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
        def spot(loc: Triple) -> tuple[str, int, int]:
            file, line, column = loc
            return code.files.get(file) or self.module.files.get(file) or f"file {file}", line, column

        source = spot(op.loc) if op.loc is not None else None
        inlined_at = tuple(spot(loc) for loc in op.inlined_at)
        text = spelled(op)
        if op.call is not None:
            callee = op.call.target
            text += f" {callee.name if isinstance(callee, Function) else callee.register.name}"
        self.sites.append(Site(op.at.line, op.at.column, source, code.function.name, text, inlined_at))
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


def destinations(op: Op) -> tuple[bool, ...]:
    """For each operand, whether the instruction writes it."""
    return tuple(spec.role is Role.DST for spec in op.specs) or (False,) * len(op.operands)


def sources(op: Op) -> tuple[bool, ...]:
    """For each operand, whether the instruction reads its registers: an address's too."""
    return tuple(spec.role is not Role.DST or spec.read for spec in op.specs) or (True,) * len(op.operands)


_CARRY_IN = frozenset({"addc", "subc", "madc"})


def cells_written(step: Step) -> list[Cell]:
    if isinstance(step, Transfer):
        return _transfer_cells(step, written=True)
    if isinstance(step, Handover):
        return [m.target_scope.cell(m.target) for m in step.moves if isinstance(m.target, Reg)]
    cells = []
    for operand, written in zip(step.op.operands, destinations(step.op), strict=True):
        if written:
            cells += [step.scope.cell(reg) for reg in registers_in(operand)]
    if step.op.call is not None:
        cells += _call_cells(step, step.op.call.returns)
    if "cc" in step.op.mods:
        cells.append(step.scope.carry)
    if step.op.opcode in ("alloca", "stackrestore"):
        cells.append(step.scope.program.common_cell(step.scope.program.top))
    return cells


def cells_read(step: Step) -> list[Cell]:
    """Cells an instruction reads, its guard's among them."""
    if isinstance(step, Transfer):
        return _transfer_cells(step, written=False)
    if isinstance(step, Handover):
        read = [m.source_scope.cell(m.source) for m in step.moves if isinstance(m.source, Reg)]
        places = [m.source for m in step.moves] + [m.target for m in step.moves]
        if any(isinstance(place, Placed) and place.framed for place in places):
            program = step.inst.scope.program
            read.append(program.common_cell(program.frame))
        return read
    cells = []
    for operand, is_read in zip(step.op.operands, sources(step.op), strict=True):
        if is_read:
            cells += [step.scope.cell(reg) for reg in registers_in(operand)]
    if step.guard is not None:
        cells.append(step.scope.cell(step.guard))
    if step.op.call is not None:
        cells += _call_cells(step, step.op.call.args)
        if isinstance(step.op.call.target, Reg):
            cells.append(step.scope.cell(step.op.call.target))
        cells.append(step.scope.program.common_cell(step.scope.program.frame))
    if step.op.opcode in ("alloca", "stacksave"):
        cells.append(step.scope.program.common_cell(step.scope.program.top))
    if step.op.opcode in _CARRY_IN:
        cells.append(step.scope.carry)
    return cells


def _call_cells(inst: Inst, operands: tuple[Operand, ...]) -> list[Cell]:
    return [inst.scope.cell(reg) for operand in operands for reg in registers_in(operand)]


def _transfer_cells(step: Transfer, *, written: bool) -> list[Cell]:
    """What a real call writes or reads at one end."""
    program, call = step.inst.scope.program, step.call
    frame, depth = program.common_cell(program.frame), program.common_cell(program.depth)
    if call is None:
        return [program.common_cell(program.back)] if written else [frame]
    saved = [cell for cell, _ in call.saved]
    inst = call.inst
    assert inst.op.call is not None
    if step.routine is not None:
        return [frame, depth] if written else [frame, depth, *_call_cells(inst, inst.op.call.args), *saved]
    return [frame, depth, *_call_cells(inst, inst.op.call.returns), *saved] if written else [frame, depth]
