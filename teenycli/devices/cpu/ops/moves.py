"""Moves, vectors packed and unpacked (PTX ISA 9.7.9, mov), and small instructions without effect here."""

from __future__ import annotations

from teenycli.devices.cpu.layout import FaultKind
from teenycli.devices.cpu.lower import Lowering, stored_type
from teenycli.devices.cpu.native import first_lane
from teenycli.devices.cpu.ops.compare import raw_or_bits
from teenycli.devices.cpu.program import Inst
from teenycli.devices.cpu.registry import lowers
from teenycli.devices.cpu.value import BITS, Value, integer
from teenycli.ptx.code import Operand, Reg, Vec


@lowers("mov")
def _mov(x: Lowering, inst: Inst) -> None:
    mods = inst.op.mods
    target, source = inst.op.operands
    if "vec" in mods:
        for to, a in zip(x.elements(target), x.elements(source), strict=True):
            x.write(to, x.read(a, f"i{BITS[stored_type(mods['type'])]}"))
    elif mods["type"] == "pred":
        x.write(target, x.read(source, "i1"))
    elif isinstance(source, Vec):
        x.write(target, _packed(x, source, f"i{mods['type'][1:]}"))
    elif isinstance(target, Vec):
        _unpack(x, target, x.read(source, f"i{mods['type'][1:]}"))
    else:
        x.write(target, raw_or_bits(x, source, mods["type"]))


def _element_bits(operands: tuple[Operand | None, ...], whole: int) -> int:
    return whole // len(operands)


def _packed(x: Lowering, source: Vec, kind: str) -> Value:
    """``{a, b}`` as one value, a lowest."""
    w, each = x.w, _element_bits(source.items, BITS[kind])
    total = integer(kind, 0)
    for k, item in enumerate(source.items):
        part = w.resize(x.read(item, f"i{each}"), kind)
        total = w.either(total, w.binary("shl", part, integer(kind, k * each))) if k else part
    return total


def _unpack(x: Lowering, target: Vec, value: Value) -> None:
    w, each = x.w, _element_bits(target.items, value.bits)
    parts = []
    for k in range(len(target.items)):
        part = w.binary("lshr", value, integer(value.type, k * each)) if k else value
        parts.append(w.resize(part, f"i{each}"))
    for item, part in zip(target.items, parts, strict=True):
        if isinstance(item, Reg):
            x.write(item, part)


@lowers("brkpt")
def _brkpt(x: Lowering, _: Inst) -> None:
    """A breakpoint without a debugger ends the kernel, as ``trap`` does."""
    w = x.w
    hit, on = w.fresh_label("hit"), w.fresh_label("on")
    w.branch(w.assign(f"icmp ne i{w.width} {x.bits_of(x.exec)}, 0"), hit, on)
    w.label(hit)
    x.fault(FaultKind.TRAP, first_lane(w, x.bits_of(x.exec)))
    w.label(on)


@lowers("pmevent", "griddepcontrol", "setmaxnreg", "nanosleep")
def _nothing(*_: object) -> None:
    """Performance events, launches that depend on each other, register counts, sleep: nothing to do."""


@lowers("createpolicy")
def _createpolicy(x: Lowering, inst: Inst) -> None:
    """A cache policy is an opaque number that nothing here reads."""
    x.write(inst.op.operands[0], integer("i64", 0))
