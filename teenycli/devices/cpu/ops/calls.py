"""Calls (PTX ISA 9.7.12: call): values handed over, frames entered and left, the stack (alloca, stacksave,
stackrestore), and what the host does for device code: printing, the heap, assertions."""

from __future__ import annotations

from msgspec.structs import replace

from teenycli.devices.cpu import native
from teenycli.devices.cpu.layout import Context, FaultKind, offset
from teenycli.devices.cpu.lower import Lowering, stored_type
from teenycli.devices.cpu.ops.access import Access
from teenycli.devices.cpu.ops.lanes import each_lane
from teenycli.devices.cpu.ops.memory import load, store
from teenycli.devices.cpu.program import (
    SERVICES,
    STACK_BYTES,
    Cell,
    Handover,
    Inst,
    Placed,
    RealCall,
    Routine,
    Transfer,
)
from teenycli.devices.cpu.registry import lowers
from teenycli.devices.cpu.value import BITS, Value, integer
from teenycli.ptx.code import Mem, Operand, Reg, Symbol
from teenycli.ptx.model import TYPE_SIZES, Function, Int, Variable

#: 64-bit words that a service takes.
_WORDS = 4


@lowers("call")
def _call(x: Lowering, inst: Inst) -> None:
    """A service of the host, for each acting lane in turn."""
    call = inst.op.call
    assert call is not None
    assert isinstance(call.target, Function)
    args = [_argument(x, inst, operand, formal) for operand, formal in zip(call.args, call.target.params, strict=False)]
    result = _serve(x, SERVICES[call.target.name], args[:_WORDS])
    for operand in call.returns:
        _give(x, inst, operand, result)


def _argument(x: Lowering, inst: Inst, operand: Operand, formal: Variable) -> Value:
    """An argument, as 64 bits."""
    if isinstance(operand, Symbol) and isinstance(operand.target, Variable):
        value = _load(x, inst.scope.place(operand.target), TYPE_SIZES[formal.type])
    else:
        value = x.read(operand, f"i{8 * TYPE_SIZES[formal.type]}")
    return x.w.resize(value, "i64", formal.type.startswith("s"))


def _give(x: Lowering, inst: Inst, operand: Operand, value: Value) -> None:
    if isinstance(operand, Symbol) and isinstance(operand.target, Variable):
        size = TYPE_SIZES[operand.target.type]
        _store(x, inst.scope.place(operand.target), x.w.resize(value, f"i{8 * size}"))
    else:
        assert isinstance(operand, Reg)
        _write(x, inst.scope.cell(operand), value)


def _serve(x: Lowering, service: int, args: list[Value]) -> Value:
    """Call the host once for each acting lane; the results, 64 bits each."""
    w = x.w
    function = w.assign(f"inttoptr i64 {x.field('launch', 'service', 'i64')} to ptr")

    def serve(lane: str, words: list[str]) -> str:
        texts = ", ".join(f"i64 {word}" for word in [*words, *["0"] * (_WORDS - len(words))])
        thread = w.assign(f"add i32 %t0, {lane}")
        result = w.assign(f"call i64 {function}(ptr %ctx, i32 {service}, i32 {thread}, {texts})")
        place = w.assign(f"getelementptr i8, ptr %ctx, i64 {offset(Context, 'verdict')}")
        verdict = w.assign(f"load i32, ptr {place}, align 4")
        fine, wrong = w.fresh_label("fine"), w.fresh_label("wrong")
        w.branch(w.assign(f"icmp eq i32 {verdict}, 0"), fine, wrong, likely=True)
        w.label(wrong)
        x.fault(verdict, lane, result)
        w.label(fine)
        return result

    return each_lane(x, args, "i64", serve)


# --- values in memory ------------------------------------------------------------------------------------------------


def _base(x: Lowering, place: Placed) -> Mem:
    return Mem(Reg(x.program.frame)) if place.framed else Mem(0)


def _load(x: Lowering, place: Placed, size: int) -> Value:
    """``size`` bytes of a lane's local memory as an integer."""
    return load(x, Access("local", 1, size, place.offset, False), _base(x, place))[0]


def _store(x: Lowering, place: Placed, value: Value) -> None:
    store(x, Access("local", 1, value.bits // 8, place.offset, True), _base(x, place), [value])


def _write(x: Lowering, cell: Cell, value: Value) -> None:
    """An integer into a cell of any type."""
    kind = stored_type(cell.type)
    x.store(cell, x.w.bitcast(x.w.resize(value, f"i{BITS[kind]}"), kind))


def _copy(x: Lowering, source: Placed, target: Placed, size: int) -> None:
    at = 0
    while at < size:
        unit = next(u for u in (8, 4, 2, 1) if u <= size - at and not (source.offset + at | target.offset + at) % u)
        _store(
            x, replace(target, offset=target.offset + at), _load(x, replace(source, offset=source.offset + at), unit)
        )
        at += unit


def hand_over(x: Lowering, step: Handover) -> None:
    """A call's moves between registers, and between a register and a ``.param`` variable of the other side."""
    values = []
    for move in step.moves:
        size = TYPE_SIZES[move.type]
        if isinstance(move.source, Placed):
            values.append(_load(x, move.source, size))
        elif isinstance(move.source, Reg):
            values.append(x.read_cell(move.source_scope.cell(move.source), f"i{8 * size}"))
        else:
            values.append(x.read(move.source, f"i{8 * size}"))
    for move, value in zip(step.moves, values, strict=True):
        if isinstance(move.target, Placed):
            _store(x, move.target, value)
        else:
            _write(x, move.target_scope.cell(move.target), value)


# --- real calls ------------------------------------------------------------------------------------------------------


def transfer(x: Lowering, step: Transfer) -> None:
    """One end of a real call."""
    if step.call is None:
        back = x.program.common_cell(x.program.back)
        _write(x, back, _load(x, x.program.framed(0), 4))
    elif step.routine is not None:
        _enter(x, step.call, step.routine)
    else:
        _leave(x, step.call)


def _enter(x: Lowering, call: RealCall, routine: Routine) -> None:
    """Arguments into the new frame, cells into the old one; then the new one counts."""
    w, program = x.w, x.program
    step = call.caller.frame if call.caller is not None else 0
    frame, depth = program.common_cell(program.frame), program.common_cell(program.depth)
    new = w.add(x.read_cell(frame, "i64"), integer("i64", step))
    deeper = w.add(x.read_cell(depth, "i32"), integer("i32", 1))
    _check(x, w.compare("icmp ugt", new, integer("i64", STACK_BYTES - routine.frame)), FaultKind.RECURSION, deeper)
    given = call.inst.op.call
    assert given is not None
    for operand, formal, place in zip(given.args, routine.function.params, routine.params, strict=True):
        target = program.framed(step + place)
        if isinstance(operand, Symbol) and isinstance(operand.target, Variable):
            _copy(x, call.inst.scope.place(operand.target), target, formal.size)
        else:
            _store(x, target, x.read(operand, f"i{8 * TYPE_SIZES[formal.type]}"))
    for cell, place in call.saved:
        kind = f"i{BITS[stored_type(cell.type)]}"
        value = x.read_cell(cell, kind)
        _store(x, program.framed(place), w.resize(value, "i8") if kind == "i1" else value)
    _store(x, program.framed(step), integer("i32", routine.returns_to.index(call.after)))
    x.store(frame, new)
    x.store(depth, deeper)


def _leave(x: Lowering, call: RealCall) -> None:
    """The old frame counts again: results out of the one left, cells back."""
    w, program = x.w, x.program
    step = call.caller.frame if call.caller is not None else 0
    frame, depth = program.common_cell(program.frame), program.common_cell(program.depth)
    x.store(frame, w.sub(x.read_cell(frame, "i64"), integer("i64", step)))
    x.store(depth, w.sub(x.read_cell(depth, "i32"), integer("i32", 1)))
    routine, given = call.targets[0], call.inst.op.call
    assert given is not None
    for operand, formal, place in zip(given.returns, routine.function.returns, routine.returns, strict=True):
        source = program.framed(step + place)
        if isinstance(operand, Symbol) and isinstance(operand.target, Variable):
            _copy(x, source, call.inst.scope.place(operand.target), formal.size)
        else:
            assert isinstance(operand, Reg)
            _write(x, call.inst.scope.cell(operand), _load(x, source, TYPE_SIZES[formal.type]))
    for cell, place in call.saved:
        _write(x, cell, _load(x, program.framed(place), max(BITS[stored_type(cell.type)] // 8, 1)))


def _check(x: Lowering, wrong: Value, kind: FaultKind, what: Value) -> None:
    """A fault for the first acting lane in which ``wrong`` holds; ``what`` is its address."""
    w = x.w
    bits = w.bits(w.lanes(w.both(x.exec, w.varying(wrong))))
    bad, fine = w.fresh_label("bad"), w.fresh_label("fine")
    w.branch(w.assign(f"icmp ne i{w.width} {bits}, 0"), bad, fine, likely=False)
    w.label(bad)
    lane = native.first_lane(w, bits)
    lanes = w.lanes(w.resize(what, "i64"))
    x.fault(kind, lane, w.assign(f"extractelement {w.vector('i64')} {lanes}, i32 {lane}"))
    w.label(fine)


# --- the stack -------------------------------------------------------------------------------------------------------


@lowers("alloca")
def _alloca(x: Lowering, inst: Inst) -> None:
    """Memory of a lane's own until its function returns; an address in local space (PTX ISA 9.7.17, alloca)."""
    w, program = x.w, x.program
    operands = inst.op.operands
    align = operands[2].value if len(operands) > 2 and isinstance(operands[2], Int) else 8
    top = program.common_cell(program.top)
    base = program.alloca_stack
    size = x.read(operands[1], f"i{8 * TYPE_SIZES[inst.op.mods['type']]}")
    size = w.resize(size, "i64")
    at = w.add(x.read_cell(top, "i64"), integer("i64", base + align - 1))
    start = w.both(at, integer("i64", -align))
    end = w.sub(w.add(start, size), integer("i64", base))
    limit = integer("i64", STACK_BYTES)
    wrong = w.either(w.compare("icmp ugt", size, limit), w.compare("icmp ugt", end, limit))
    _check(x, wrong, FaultKind.STACK, size)
    x.write(operands[0], w.resize(start, f"i{8 * TYPE_SIZES[inst.op.mods['type']]}"))
    x.store(top, end)


@lowers("stacksave")
def _stacksave(x: Lowering, inst: Inst) -> None:
    top = x.read_cell(x.program.common_cell(x.program.top), "i64")
    x.write(inst.op.operands[0], x.w.resize(top, f"i{8 * TYPE_SIZES[inst.op.mods['type']]}"))


@lowers("stackrestore")
def _stackrestore(x: Lowering, inst: Inst) -> None:
    """Give back what ``alloca`` has given since. What never was a top of the stack would reach past it later."""
    saved = x.w.resize(x.read(inst.op.operands[0], f"i{8 * TYPE_SIZES[inst.op.mods['type']]}"), "i64")
    _check(x, x.w.compare("icmp ugt", saved, integer("i64", STACK_BYTES)), FaultKind.STACK, saved)
    x.store(x.program.common_cell(x.program.top), saved)
