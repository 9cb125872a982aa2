"""What instructions that touch no memory leave in registers: the integers' meanings, and what is known although not all
of it is. May import ``footprint``'s ``arena``, ``integers``, ``lanes``, and ``ptx.code``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from teenycli.footprint import integers
from teenycli.footprint.arena import FIRST_BUFFER, FIRST_VARIABLE, HALF, SHARED, SHIFT, WINDOWS
from teenycli.footprint.lanes import Value, all_of, resize, unknown
from teenycli.ptx.code import Op


def result(op: Op, values: Sequence[Value]) -> Value:
    """The (first) result of ``op``."""
    if op.opcode == "selp":
        return _select(values)
    if op.opcode in ("cvta", "isspacep"):
        window = WINDOWS.get(op.mods["space"].partition("::")[0], 0)
        return (_convert_address if op.opcode == "cvta" else _is_in_space)(op, values[0], window)
    if op.opcode in ("and", "or") and op.mods["type"] == "pred":
        return logic(op.opcode, values[0], values[1])
    sure = all_of(*values)
    bits = integers.evaluate(op.opcode, op.mods, [value.bits for value in values]) if sure.any() else None
    return unknown(64) if bits is None else Value(bits, sure)


def predicates(op: Op, values: Sequence[Value]) -> tuple[Value, Value]:
    """Both results of ``setp``: the comparison and its opposite, each combined with the third operand."""
    sure = all_of(*values[:2])
    bits = integers.evaluate("setp", op.mods, [value.bits for value in values[:2]]) if sure.any() else None
    first = unknown(1) if bits is None else Value(bits, sure)
    second = Value(~first.bits, first.known)
    if "bool" in op.mods:
        first, second = (logic(op.mods["bool"], value, values[2]) for value in (first, second))
    return first, second


def logic(how: str, a: Value, b: Value) -> Value:
    """``and``, ``or`` or ``xor`` of predicates: the first two are known also where one operand alone decides."""
    if how == "xor":
        return Value(a.bits ^ b.bits, all_of(a, b))
    decisive = how == "or"
    decides = (a.known & (a.bits == decisive)) | (b.known & (b.bits == decisive))
    bits = a.bits | b.bits if decisive else a.bits & b.bits
    return Value(np.where(decides, np.bool_(decisive), bits), a.known & b.known | decides)


def packed(values: Sequence[Value], part: int, width: int) -> Value:
    """Registers of ``part`` bits as one of ``width``, the first lowest."""
    whole = np.zeros(1, np.uint64)
    for k, value in enumerate(values):
        whole = whole | value.bits.astype(np.uint64) << np.uint64(k * part)
    return Value(resize(whole, width), all_of(*values))


def unpacked(value: Value, index: int, part: int) -> Value:
    """The ``index``-th ``part`` bits of a register."""
    bits = value.bits.astype(np.uint64) >> np.uint64(index * part) & np.uint64((1 << part) - 1)
    return Value(resize(bits, max(part, 8)), value.known)


def _select(values: Sequence[Value]) -> Value:
    """selp: known too where the predicate is not, but both values are the same."""
    a, b, p = values
    same = a.known & b.known & (a.bits == b.bits)
    return Value(np.where(p.bits, a.bits, b.bits), np.where(p.known, np.where(p.bits, a.known, b.known), same))


def _convert_address(op: Op, value: Value, window: int) -> Value:
    """cvta: between an address in a window and a generic one. Buffers and variables have the same address in both."""
    bits, base = resize(value.bits, 64), np.uint64(window)
    return Value(bits - base if "to" in op.mods else bits + base, value.known)


def _is_in_space(op: Op, value: Value, window: int) -> Value:
    """isspacep, of generic addresses; the spaces without a window are global and const."""
    places = (resize(value.bits, 64) + np.uint64(HALF)) >> np.uint64(SHIFT)
    if window:
        return Value(places == window >> SHIFT, value.known)
    # Variables of both lie side by side.
    told = (places >= SHARED) & (places < FIRST_VARIABLE) | (places >= FIRST_BUFFER)
    return Value((places >= FIRST_BUFFER) & (op.mods["space"] == "global"), value.known & told)
