"""From resolved code to blocks: bodies cut up, calls inlined or, where ``callgraph`` says so, made for real.

May import ``program``, ``callgraph`` and what they may import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from msgspec import structs

from teenycli.devices.cpu.callgraph import CallGraph
from teenycli.devices.cpu.program import (
    SERVICES,
    Block,
    Cell,
    Handover,
    Inst,
    Move,
    Placed,
    Program,
    RealCall,
    Routine,
    Scope,
    Transfer,
    cells_read,
    cells_written,
    destinations,
    meets,
    suspends,
    variables_in,
)
from teenycli.devices.cpu.unsupported import unsupported
from teenycli.ptx import code_of
from teenycli.ptx.code import Code, Mem, Op, Operand, Reg, Register, Symbol, Table
from teenycli.ptx.model import Function, Int, Module, Space, Variable

#: Most instructions a kernel may have after inlining.
INLINE_LIMIT = 400_000

_ENDING = frozenset({"ret", "exit", "trap", "brx", "call"})


def build_program(module: Module, entry: Function, sm: int) -> Program:
    """The program of an entry. Raises TeenyError ``unsupported-instruction`` where it calls what is not here."""
    program = Program(module, entry, sm)
    _Builder(program).build()
    return program


class _Builder:
    """Cuts bodies into blocks and ties calls to what they call."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.module = program.module
        self.graph = CallGraph(program.module)
        self.current = program.start
        self.routine: Routine | None = None
        self.routines: dict[str, Routine] = {}
        self.pending: list[Routine] = []
        self.calls: list[RealCall] = []
        #: Whether a function may call ``alloca``: what it took is given back when it returns.
        self.allocas = "alloca" in program.module.source.text

    def build(self) -> None:
        program = self.program
        self.graph.add(program.entry)
        code = code_of(self.module, program.entry)
        self._body(code, Scope(program, code), program.exit)
        self._routines()
        program.place_initialised()
        while self._find_targets():
            self._routines()
            program.place_initialised()
        _link(program, self.calls)

    # --- bodies ----------------------------------------------------------------------------------------------

    def _body(self, code: Code, scope: Scope, end: Block) -> None:
        """Append the blocks of one instance; every ``ret`` goes to ``end``."""
        function = code.function
        if function not in self.program.reached:
            self.program.reached.append(function)
        self.program.count += len(code.ops)
        if self.program.count > INLINE_LIMIT:
            raise unsupported(self.module, f"more than {INLINE_LIMIT} instructions once calls are inlined", None)
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

    def _finish(self, kind: str, last: Inst | None, targets: list[Block]) -> None:
        if not self.current.kind:
            self.current.kind, self.current.last, self.current.targets = kind, last, targets

    def _continue(self, block: Block) -> None:
        """Fall into ``block`` and go on there."""
        if self.current is not block:
            self._finish("jump", None, [block])
        self.current = block

    def _op(self, op: Op, code: Code, scope: Scope, blocks: Mapping[str, Block], end: Block) -> None:
        op = replace(op, operands=tuple(self._placed(operand, scope) for operand in op.operands))
        inst = Inst(op, scope, op.guard, self.program.site(op, code))
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
        elif op.opcode in _ENDING or suspends(op) or meets(op):
            self._ending(inst, blocks, end)
        else:
            self.current.steps.append(inst)

    def _placed(self, operand: Operand | None, scope: Scope) -> Operand | None:
        """The operand, with what it names put in its place.

        Where dynamic shared memory begins, and what initialisers name, depends on every variable: places now. One in
        a frame becomes an address off the frame's register, a function its address.
        """
        for variable in variables_in(operand):
            place = scope.place(variable)
            if place.framed:
                assert isinstance(operand, (Mem, Symbol))
                return Mem(Reg(self.program.frame), place.offset + operand.offset)
        if isinstance(operand, Symbol) and isinstance(operand.target, Function):
            return Int(self.program.function_address(operand.target) + operand.offset)
        return operand

    def _ending(self, inst: Inst, blocks: Mapping[str, Block], end: Block) -> None:
        """An instruction that ends a block; a guard on it becomes a branch around it."""
        after = Block()
        opcode = inst.op.opcode
        if inst.guard is not None:
            leaves = {"ret": end, "exit": self.program.exit}.get(opcode)
            body = leaves or Block()
            self._finish("branch", inst, [body, after])
            self.current = after if leaves else body
            if leaves:
                return
            inst = structs.replace(inst, guard=None)
        if opcode == "ret":
            self._finish("jump", inst, [end])
        elif opcode == "exit":
            self._finish("jump", inst, [self.program.exit])
        elif opcode == "trap":
            self._finish("trap", inst, [])
        elif opcode == "brx":
            table = inst.op.operands[1]
            assert isinstance(table, Table)
            self._finish("switch", inst, [blocks[label.name] for label in table.labels])
        elif opcode == "call":
            self._call(inst)
        else:
            woken = Block()
            self._finish("meet" if meets(inst.op) else "suspend", inst, [woken])
            self.current = woken
            if any(destinations(inst.op)):
                woken.steps.append(inst)
        self._continue(after)

    # --- calls -----------------------------------------------------------------------------------------------

    def _call(self, inst: Inst) -> None:
        call = inst.op.call
        assert call is not None
        for operand in (*call.args, *call.returns):
            for variable in variables_in(operand):
                inst.scope.place(variable)
        if isinstance(call.target, Reg):
            self._keep_top(inst, lambda: self._call_for_real(inst, None))
            return
        function = self.graph.definition(call.target)
        if function.body is None and function.name in SERVICES:
            self.program.services.add(function.name)
            self.current.steps.append(inst)
        elif function.body is None:
            raise unsupported(self.module, f"a call of '{function.name}', which has no body here,", inst.op)
        elif function.name in self.graph.real:
            self._keep_top(inst, lambda: self._call_for_real(inst, function))
        else:
            self._keep_top(inst, lambda: self._inline(inst, function))

    def _keep_top(self, inst: Inst, call: Callable[[], None]) -> None:
        """Make a call, and give back what it has allocated on the stack."""
        if not self.allocas:
            call()
            return
        kept, top = Reg(Register("top", "b64")), Reg(self.program.top)
        self.current.steps.append(Handover(inst, (Move(kept, inst.scope, top, inst.scope, "b64"),)))
        call()
        self.current.steps.append(Handover(inst, (Move(top, inst.scope, kept, inst.scope, "b64"),)))

    def _inline(self, inst: Inst, function: Function) -> None:
        call = inst.op.call
        assert call is not None
        code = code_of(self.module, function)
        scope = Scope(self.program, code, inst.scope.routine)
        registers = {r.name: r for r in code.registers}
        moves = _tied(inst, scope, registers, function.params, call.args, incoming=True)
        results = _tied(inst, scope, registers, function.returns, call.returns, incoming=False)
        if moves:
            self.current.steps.append(Handover(inst, moves))
        end = Block()
        self._body(code, scope, end)
        self.current = end
        if results:
            self.current.steps.append(Handover(inst, results))

    def _call_for_real(self, inst: Inst, function: Function | None) -> None:
        """End the block with a call of ``function``, or of what a register holds."""
        after = Block()
        made = RealCall(inst, inst.scope.routine, self.current, after)
        if function is not None:
            made.targets.append(self._routine(function, inst))
        self.calls.append(made)
        after.steps.append(Transfer(inst, (), made))
        self._finish("call", inst, [after])
        self.current = after

    def _routine(self, function: Function, caller: Inst) -> Routine:
        found = self.routines.get(function.name)
        if found is None:
            found = self.routines[function.name] = Routine(function, caller)
            found.returns = [found.reserve(v.size, min(v.align, 16)) for v in function.returns]
            found.params = [found.reserve(v.size, min(v.align, 16)) for v in function.params]
            self.pending.append(found)
        return found

    def _routines(self) -> None:
        """Build the bodies of routines that have none yet."""
        while self.pending:
            routine = self.pending.pop()
            self.graph.add(routine.function)
            code = code_of(self.module, routine.function)
            scope = routine.scope = Scope(self.program, code, routine)
            registers = {r.name: r for r in code.registers}
            taken = self._in_frame(scope, registers, routine.function.params, routine.params)
            given = self._in_frame(scope, registers, routine.function.returns, routine.returns)
            self.current, end = routine.start, routine.end
            if taken:
                self.current.steps.append(Handover(routine.first, tuple(taken)))
            self._body(code, scope, end)
            if given:
                moves = tuple(
                    Move(m.source, scope, m.target, scope, m.type) for m in given if isinstance(m.source, Reg | Placed)
                )
                end.steps.append(Handover(routine.first, moves))
            end.steps.append(Transfer(routine.first, ()))
            end.kind, end.targets = "return", routine.returns_to

    def _in_frame(
        self,
        scope: Scope,
        registers: Mapping[str, Register],
        variables: tuple[Variable, ...],
        offsets: list[int],
    ) -> list[Move]:
        """Tie parameters or results to their places in the frame; the moves into those that are registers."""
        moves = []
        for variable, offset in zip(variables, offsets, strict=True):
            place = self.program.framed(offset)
            if variable.space is Space.PARAM:
                scope.places[id(variable)] = place
            else:
                moves.append(Move(Reg(registers[variable.name]), scope, place, scope, variable.type))
        return moves

    # --- indirect calls --------------------------------------------------------------------------------------

    def _find_targets(self) -> bool:
        """Let indirect calls reach every function of their list, or of their shape, whose address is known; whether
        one came to be."""
        known = [self.graph.bodies[name] for name in self.program.functions if name in self.graph.bodies]
        for call in self.calls:
            given = call.inst.op.call
            assert given is not None
            if isinstance(given.target, Function) or given.table is None:
                continue
            listed = [self.graph.definition(f) for f in given.table.functions]
            shape = _shape(given.table.returns, given.table.params)
            for function in listed or [f for f in known if _shape(f.returns, f.params) == shape]:
                if function.body is not None and all(t.function is not function for t in call.targets):
                    self.program.function_address(function)
                    call.targets.append(self._routine(function, call.inst))
        return bool(self.pending)


def _shape(returns: tuple[Variable, ...], params: tuple[Variable, ...]) -> tuple[tuple[tuple[int, int], ...], ...]:
    """What two functions have in common that one call can reach: sizes and alignments of results and parameters."""
    return tuple(tuple((v.size, v.align) for v in variables) for variables in (returns, params))


def _tied(
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


# --- real calls ----------------------------------------------------------------------------------------------------


def _link(program: Program, calls: list[RealCall]) -> None:
    """Give each call what it must save, and let it go to the routines and come back."""
    live = _live_after(calls)
    for call in calls:
        if call.caller is not None:
            for cell in live[call.after]:
                if cell not in program.common.values():
                    size = 16 if cell.type == "b128" else 8
                    call.saved.append((cell, call.caller.reserve(size, size)))
    for call in calls:
        entering = [Block(kind="jump", targets=[routine.start], enters=routine) for routine in call.targets]
        for block, routine in zip(entering, call.targets, strict=True):
            block.steps.append(Transfer(call.inst, (), call, routine))
            routine.returns_to.append(call.after)
        given = call.inst.op.call
        assert given is not None
        direct = isinstance(given.target, Function)
        call.block.kind, call.block.targets = ("jump", entering) if direct else ("dispatch", entering)


def _live_after(calls: list[RealCall]) -> dict[Block, list[Cell]]:
    """Cells that are read after a call comes back, by the block it comes back to; within its function.

    At this time a call's block still goes to where it comes back to, so that each function is a graph of its own.
    """
    blocks: dict[Block, None] = dict.fromkeys(call.block for call in calls)
    pending = list(blocks)
    while pending:
        for target in pending.pop().targets:
            if target not in blocks:
                blocks[target] = None
                pending.append(target)
    uses: dict[Block, set[Cell]] = {}
    kills: dict[Block, set[Cell]] = {}
    for block in blocks:
        use, kill = uses.setdefault(block, set()), kills.setdefault(block, set())
        for step in (*block.steps, *([block.last] if block.last is not None else [])):
            use |= set(cells_read(step)) - kill
            if isinstance(step, Handover) or step.guard is None:
                kill |= set(cells_written(step))
            else:
                use |= set(cells_written(step)) - kill
    live: dict[Block, set[Cell]] = {block: set(uses[block]) for block in blocks}
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            found = uses[block] | set().union(*(live[t] for t in block.targets)) - kills[block]
            if found != live[block]:
                live[block], changed = found, True
    return {call.after: sorted(live[call.after], key=lambda cell: cell.name) for call in calls}
