"""Comparisons of threads' indices with numbers that are passed: ``i < n``, by which a kernel says how far it goes.

May import ``ptx``.
"""

from __future__ import annotations

from msgspec import Struct

from teenycli.ptx.code import Op, Reg
from teenycli.ptx.flow import Flow
from teenycli.ptx.graph import HELD, NEAR, numbers
from teenycli.ptx.strides import Unit

#: By the comparison, whether the index is the first operand and whether the last index within is one less.
_STRICT = {"lt": True, "ge": True, "lo": True, "hs": True, "le": False, "gt": False, "ls": False, "hi": False}

#: What leaves a bound what it is, or makes a stride of it.
_PLAIN = frozenset({"setp", "mul", "mov", "cvt", "st"})


class Comparison(Struct, frozen=True):
    """``setp`` of an index, its operand number ``index`` (0 or 1 of the two compared), and a number that ``units`` have
    a part in, values that are passed. ``strict``: the number is the first that is out of bounds, not the last that is
    within."""

    index: int
    strict: bool
    units: tuple[Unit, ...]


def comparisons(flow: Flow) -> dict[int, Comparison]:
    """Those of the entry that ``flow`` begins with, by ``id`` of the instruction. An index is what no parameter and no
    memory has a part in."""
    found, mixed = {}, _mixed(flow)
    for op in flow.frames[0].code.ops:
        if op.opcode == "setp" and op.mods["cmp"] in _STRICT and op.mods["type"][0] in "su":
            comparison = _comparison(flow, op)
            if comparison is not None and mixed.isdisjoint(comparison.units):
                found[id(op)] = comparison
    return found


def _mixed(flow: Flow) -> set[Unit]:
    """What is passed that more is computed from than comparisons, strides and what constants make of them: such as how
    often a loop is to be run, ``(n - i + 31) / 32``."""
    found: set[Unit] = set()
    for record in flow.frames[0].records:
        plain = 2 if record.op.opcode == "mad" else 9 if record.op.opcode in _PLAIN or len(record.values) < 2 else 0
        for place, node in record.values:
            if place > plain:
                found |= _units(flow, flow.graph.state[node])
    return found


def _units(flow: Flow, bits: int) -> set[Unit]:
    """What is passed that a value holds, or that constants make it of."""
    tokens = (flow.graph.tokens[number] for number in numbers(bits, HELD | NEAR))
    return {(token.param, token.offset) for token in tokens}


def _comparison(flow: Flow, op: Op) -> Comparison | None:
    nodes, state = flow.frames[0].nodes, flow.graph.state
    first, second = op.operands[1:3]
    if not (isinstance(first, Reg) and isinstance(second, Reg)):
        return None
    bits = [state[nodes[operand.register]] for operand in (first, second)]
    if bool(bits[0]) == bool(bits[1]):
        return None
    index = 0 if not bits[0] else 1
    units = _units(flow, bits[1 - index])
    if not units or any(param < 0 or offset < 0 for param, offset in units):
        return None
    strict = _STRICT[op.mods["cmp"]]
    return Comparison(index, strict if index == 0 else not strict, tuple(sorted(units)))
