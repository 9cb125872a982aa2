"""A guess, from the text alone, of how far apart the values of neighbouring lanes lie.

Memory access tries the form that the guess suggests and falls back to any-address access; a wrong guess costs time,
never correctness.

May import ``flow``, ``program`` and ``ptx.model``.
"""

from __future__ import annotations

from collections.abc import Callable

from teenycli.devices.cpu.flow import Flow
from teenycli.devices.cpu.program import Cell, Handover, Inst, Scope, cells_written
from teenycli.ptx.code import Operand, Reg, Special, Symbol
from teenycli.ptx.model import Int

#: Definitions looked at for one question, at most: chains are short where a guess is worth anything.
_DEPTH = 40


class Strides:
    """Answers for the cells of one kernel; ``group`` is the number of lanes that one access covers."""

    def __init__(self, flow: Flow, group: int) -> None:
        self.flow = flow
        self.group = group
        self.known: dict[Cell, int | None] = {}
        self.busy: set[Cell] = set()
        self.defs: dict[Cell, list[Inst | Handover]] = {}
        for block in flow.blocks:
            for step in block.steps:
                for cell in cells_written(step):
                    self.defs.setdefault(cell, []).append(step)

    def of(self, cell: Cell) -> int | None:
        """Difference between neighbouring lanes, in units of the value; None for no idea."""
        if self.flow.is_uniform(cell):
            return 0
        if cell not in self.known:
            if cell in self.busy or len(self.busy) > _DEPTH:
                return None
            self.busy.add(cell)
            guesses = {g for step in self.defs.get(cell, ()) if (g := self._step(step)) is not None}
            self.busy.discard(cell)
            self.known[cell] = guesses.pop() if len(guesses) == 1 else max(guesses, key=abs, default=None)
        return self.known[cell]

    def _step(self, step: Inst | Handover) -> int | None:
        if isinstance(step, Handover):
            found = {self.operand(m.source, m.source_scope) for m in step.moves if isinstance(m.source, Reg)}
            return found.pop() if len(found) == 1 else None
        rule = _RULES.get(step.op.opcode)
        return rule(self, step) if rule else None

    def operand(self, operand: Operand | None, scope: Scope) -> int | None:
        if isinstance(operand, Reg):
            return self.of(scope.cell(operand))
        if isinstance(operand, Special):
            if operand.name in ("%tid", "%laneid"):
                return 1 if operand.part in ("x", None) else 0
            return None if operand.name.startswith("%lanemask") else 0
        return 0 if isinstance(operand, (Int, Symbol)) else None

    def source(self, inst: Inst, k: int) -> int | None:
        """The guess for source operand ``k``, from 0."""
        return self.operand(inst.op.operands[k + 1], inst.scope)


def _constant(inst: Inst, k: int) -> int | None:
    operand = inst.op.operands[k + 1]
    return operand.value if isinstance(operand, Int) else None


def _same(s: Strides, inst: Inst) -> int | None:
    return s.source(inst, 0)


def _sum(s: Strides, inst: Inst) -> int | None:
    a, b = s.source(inst, 0), s.source(inst, 1)
    if a is None or b is None:
        return None
    return a - b if inst.op.opcode == "sub" else a + b


def _product(s: Strides, inst: Inst) -> int | None:
    if inst.op.mods.get("mode") == "hi":
        return None
    a, b = s.source(inst, 0), s.source(inst, 1)
    if a == 0 and b == 0:
        return 0
    for stride, constant in ((a, _constant(inst, 1)), (b, _constant(inst, 0))):
        if stride is not None and constant is not None:
            return stride * constant
    return None


def _multiply_add(s: Strides, inst: Inst) -> int | None:
    product, c = _product(s, inst), s.source(inst, 2)
    return None if product is None or c is None else product + c


def _left(s: Strides, inst: Inst) -> int | None:
    a, by = s.source(inst, 0), _constant(inst, 1)
    return a if a == 0 else None if a is None or by is None else a << min(by, 63)


def _right(s: Strides, inst: Inst) -> int | None:
    a, by = s.source(inst, 0), _constant(inst, 1)
    if a is None or by is None or a == 0:
        return a
    by = min(by, 63)
    if a % (1 << by) == 0:
        return a >> by
    return 0 if abs(a) * s.group <= 1 << by else None


def _and(s: Strides, inst: Inst) -> int | None:
    for k in (0, 1):
        a, mask = s.source(inst, k), _constant(inst, 1 - k)
        if a is not None and mask is not None:
            # The bits in which lanes differ, if lane 0 holds a multiple of the stride.
            differ = (abs(a) * s.group - 1) & -(a & -a)
            return a if mask & differ == differ else None if mask & differ else 0
    return 0 if s.source(inst, 0) == 0 and s.source(inst, 1) == 0 else None


def _modulo(s: Strides, inst: Inst) -> int | None:
    return s.source(inst, 0)


def _chosen(s: Strides, inst: Inst) -> int | None:
    a, b = s.source(inst, 0), s.source(inst, 1)
    return a if a == b else None


_RULES: dict[str, Callable[[Strides, Inst], int | None]] = {
    "mov": _same, "cvt": _same, "cvta": _same, "add": _sum, "sub": _sum, "or": _sum, "mul": _product,
    "mad": _multiply_add, "shl": _left, "shr": _right, "and": _and, "rem": _modulo, "selp": _chosen,
}  # fmt: skip
