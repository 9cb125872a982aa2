"""Buffers that parameters point to: looked up once, at the function's entry, for all accesses that start from them.

May import ``layout``, ``lower``, ``native``, ``program``.
"""

from __future__ import annotations

from ctypes import sizeof

from msgspec import Struct

from teenycli.devices.cpu.layout import ID_SHIFT, OFFSET_MASK, Entry
from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.native import ENTRY
from teenycli.devices.cpu.program import HEAP, Cell, Inst
from teenycli.devices.cpu.value import Value
from teenycli.ptx.code import Mem, Reg, Special
from teenycli.ptx.model import Variable, type_width


class Anchor(Struct, frozen=True):
    """The buffer that a parameter points to, and where in it: names of i64 values. Of none, ``size`` is 0."""

    base: str
    size: str
    offset: str


def anchor_of(x: Lowering, value: Value, *, store: bool) -> Anchor | None:
    """The buffer of a value that is a parameter; None for any other, and where buffers come and go meanwhile."""
    cell = x.held.get(value.text)
    place = None if cell is None or not HEAP.isdisjoint(x.program.services) else _parameter(x, cell)
    if place is None or place < 0 or place + 8 > x.program.param_bytes:
        return None
    return _at_entry(x, place, "writable" if store else "size")


def _parameter(x: Lowering, cell: Cell) -> int | None:
    """The offset of the 64-bit parameter that a cell holds, if it is loaded or copied from there and nowhere else."""
    defs = x.strides.defs.get(cell, ())
    if len(defs) != 1 or not isinstance(inst := defs[0], Inst) or inst.guard is not None:
        return None
    op, mods = inst.op, inst.op.mods
    if op.opcode == "ld" and mods.get("space", "").startswith("param") and isinstance(mem := op.operands[1], Mem):
        whole = "vec" not in mods and type_width(mods["type"]) == 64 and isinstance(mem.base, Variable)
        if not whole or not x.program.is_entry_param(inst.scope, mem):
            return None
        assert isinstance(mem.base, Variable)
        return inst.scope.place(mem.base).offset + mem.offset
    same = op.opcode == "mov" or (op.opcode == "cvta" and mods.get("space") in ("global", "const"))
    source = op.operands[1] if same else None
    if not isinstance(source, Reg) or source.negated or source.part is not None:
        return None
    return _parameter(x, inst.scope.cell(source))


def _at_entry(x: Lowering, place: int, limit: str) -> Anchor:
    stem = f"%buffer.{place}.{limit}"
    key = Special(stem)
    if key not in x.known_specials:
        params, table = x.field("ctx", "params", "ptr"), x.field("ctx", "table", "ptr")
        entries = x.field("ctx", "entries", "i64")
        x.w.head += [
            f"  {stem}.at = getelementptr i8, ptr {params}, i64 {place}",
            f"  {stem}.address = load i64, ptr {stem}.at, align 1, !invariant.load !2",
            f"  {stem}.number = lshr i64 {stem}.address, {ID_SHIFT}",
            f"  {stem}.known = icmp ult i64 {stem}.number, {entries}",
            f"  {stem}.row = select i1 {stem}.known, i64 {stem}.number, i64 0",
            f"  {stem}.entry = getelementptr [{sizeof(Entry)} x i8], ptr {table}, i64 {stem}.row",
            f"  {stem}.base = load i64, ptr {stem}.entry, !invariant.load !2",
            f"  {stem}.limit = getelementptr i8, ptr {stem}.entry, i64 {ENTRY[limit]}",
            f"  {stem}.size = load i64, ptr {stem}.limit, !invariant.load !2",
            f"  {stem}.offset = and i64 {stem}.address, {OFFSET_MASK}",
        ]
        x.known_specials[key] = Value("i64", f"{stem}.base", True)
    return Anchor(f"{stem}.base", f"{stem}.size", f"{stem}.offset")
