"""Barriers and fences (PTX ISA 9.7.13). What waits is done by ``control``; here is what arrives."""

from __future__ import annotations

from ctypes import sizeof

from teenycli.devices.cpu import native
from teenycli.devices.cpu.layout import CLUSTER_BARRIER, Barrier, FaultKind, FrameHead, offset
from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.native import context_at
from teenycli.devices.cpu.program import Inst
from teenycli.devices.cpu.registry import lowers
from teenycli.devices.cpu.value import Value, integer


def _operands(x: Lowering, inst: Inst) -> tuple[Value, Value, Value | None]:
    """Barrier, count of threads (0 for all) and predicate of a barrier instruction."""
    operands = list(inst.op.operands)
    predicate = None
    if "red" in inst.op.mods:
        operands = operands[1:]
        predicate = x.read(operands.pop(), "i1")
    identity = x.w.first(x.read(operands[0], "i32"))
    count = x.w.first(x.read(operands[1], "i32")) if len(operands) > 1 else integer("i32", 0)
    return identity, count, predicate


def _barrier(x: Lowering, identity: Value) -> str:
    """A pointer to one of the CTA's barriers; a number past 15 is a fault."""
    w = x.w
    good, bad = w.fresh_label("barrier"), w.fresh_label("nobarrier")
    w.branch(w.assign(f"icmp ult i32 {identity.text}, 16"), good, bad, likely=True)
    w.label(bad)
    x.fault(FaultKind.BARRIER)
    w.label(good)
    number = w.assign(f"zext i32 {identity.text} to i64")
    first = w.assign(f"getelementptr i8, ptr %ctx, i64 {context_at('barriers')}")
    return w.assign(f"getelementptr [{sizeof(Barrier)} x i8], ptr {first}, i64 {number}")


def _check_count(x: Lowering, count: Value) -> None:
    """The number of threads must be a multiple of a warp's (PTX ISA, "bar", "barrier"); else a fault."""
    w = x.w
    if not count.text.startswith("%") and int(count.text) % 32 == 0:
        return
    bits = x.bits_of(x.exec)
    good, bad = w.fresh_label("whole"), w.fresh_label("ragged")
    rest = w.assign(f"and i32 {count.text}, 31")
    w.branch(w.assign(f"icmp eq i32 {rest}, 0"), good, bad, likely=True)
    w.label(bad)
    x.fault(FaultKind.BARRIER, native.first_lane(w, bits), w.assign(f"zext i32 {count.text} to i64"))
    w.label(good)


def _bump(x: Lowering, barrier: str, field: str, by: str) -> None:
    w = x.w
    place = w.assign(f"getelementptr i8, ptr {barrier}, i64 {getattr(Barrier, field).offset}")
    old = w.assign(f"load i32, ptr {place}, align 4")
    w.line(f"store i32 {w.assign(f'add i32 {old}, {by}')}, ptr {place}, align 4")


def population(x: Lowering, mask: Value) -> str:
    """Number of set lanes as an i32."""
    w = x.w
    name = f"llvm.ctpop.i{w.width}"
    x.unit.declare(name, f"i{w.width}", [f"i{w.width}"])
    count = w.assign(f"call i{w.width} @{name}(i{w.width} {x.bits_of(mask)})")
    return count if w.width == 32 else w.assign(f"zext i{w.width} {count} to i32")


def _in_whole_warps(x: Lowering, lanes: str) -> str:
    """Lanes that arrive at a barrier with a count: with the CTA's last thread come those that its warp lacks."""
    w = x.w
    threads = x.field("launch", "threads", "i32")
    last = w.assign(f"sub i32 {w.assign(f'sub i32 {threads}, 1')}, %t0")
    here = w.assign(f"icmp ult i32 {last}, {w.width}")
    lane = w.assign(f"select i1 {here}, i32 {last}, i32 0")
    bits = x.bits_of(x.exec)
    wide = bits if w.width == 32 else w.assign(f"zext i{w.width} {bits} to i32")
    active = w.assign(f"trunc i32 {w.assign(f'lshr i32 {wide}, {lane}')} to i1")
    lacking = w.assign(f"and i32 {w.assign(f'sub i32 0, {threads}')}, 31")
    more = w.assign(f"select i1 {w.assign(f'and i1 {here}, {active}')}, i32 {lacking}, i32 0")
    return w.assign(f"add i32 {lanes}, {more}")


def arrive(x: Lowering, inst: Inst) -> Value:
    """Count the active lanes in at a barrier, that of the cluster apart, which they have reached; its number."""
    w = x.w
    if "cluster" in inst.op.mods:
        return integer("i32", CLUSTER_BARRIER)
    identity, count, predicate = _operands(x, inst)
    _check_count(x, count)
    barrier = _barrier(x, identity)
    lanes = population(x, x.exec)
    _bump(x, barrier, "arrived", lanes if count.text == "0" else _in_whole_warps(x, lanes))
    place = w.assign(f"getelementptr i8, ptr {barrier}, i64 {Barrier.expected.offset}")
    w.line(f"store i32 {count.text}, ptr {place}, align 4")
    if predicate is not None:
        true = w.both(x.exec, predicate)
        _bump(x, barrier, "count", population(x, true))
        false = w.both(x.exec, w.negate(predicate))
        _bump(x, barrier, "all", population(x, false))
    return identity


@lowers("bar", "barrier", takes=lambda mods: "arrive" in mods and "cluster" not in mods)
def _arrive(x: Lowering, inst: Inst) -> None:
    """Counted in without waiting."""
    arrive(x, inst)


@lowers("bar", "barrier", takes=lambda mods: "red" in mods)
def _result(x: Lowering, inst: Inst) -> None:
    """After the wait: how many predicates held (``count``), and whether all did (``all`` counts those that did not)."""
    w = x.w
    identity, _, _ = _operands(x, inst)
    barrier = _barrier(x, identity)

    def result(field: str) -> Value:
        place = w.assign(f"getelementptr i8, ptr {barrier}, i64 {getattr(Barrier, field).offset}")
        return Value("i32", w.assign(f"load i32, ptr {place}, align 4"), True)

    op = inst.op.mods["op"]
    if op == "popc":
        x.write(inst.op.operands[0], result("result_count"))
    elif op == "or":
        x.write(inst.op.operands[0], w.compare("icmp ne", result("result_count"), integer("i32", 0)))
    else:
        x.write(inst.op.operands[0], w.compare("icmp eq", result("result_all"), integer("i32", 0)))


@lowers("barrier", takes=lambda mods: "cluster" in mods)
def _cluster(x: Lowering, inst: Inst) -> None:
    """``arrive``: the lane is counted in, and marked until the barrier is complete. ``wait`` ends a block."""
    w = x.w
    w.line("fence seq_cst")
    if "arrive" not in inst.op.mods or not x.suspends:
        return
    place = context_at("barriers") + CLUSTER_BARRIER * sizeof(Barrier)
    _bump(x, w.assign(f"getelementptr i8, ptr %ctx, i64 {place}"), "arrived", population(x, x.exec))
    marks = w.assign(f"getelementptr i8, ptr %frame, i64 {offset(FrameHead, 'cluster')}")
    old = w.assign(f"load i{w.width}, ptr {marks}, align 4")
    w.line(f"store i{w.width} {w.assign(f'or i{w.width} {old}, {x.bits_of(x.exec)}')}, ptr {marks}, align 4")


@lowers("bar", "barrier", takes=lambda mods: "sync" in mods and "cluster" not in mods)
def _sync(*_: object) -> None:
    """Waits end a block, and are lowered with the control flow."""


@lowers("membar", "fence")
def _fence(x: Lowering, _: Inst) -> None:
    x.w.line("fence seq_cst")
