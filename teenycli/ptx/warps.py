"""Instructions in which every thread of a warp takes part. May import ``ptx.code`` and ``ptx.model``."""

from __future__ import annotations

from teenycli.ptx.code import Code, Op, Operand, Reg, Register
from teenycli.ptx.model import Int

#: Opcodes with a mask of those that take part, as the last operand (PTX ISA, "shfl.sync", "vote.sync", "match.sync",
#: "redux.sync"), and opcodes that are of the whole warp ("Warp Level Matrix Multiply-Accumulate Instructions").
MASKED = frozenset({"shfl", "vote", "match", "redux"})
WHOLE = frozenset({"mma", "wmma", "ldmatrix", "stmatrix", "movmatrix", "wgmma"})
_FULL = 0xFFFFFFFF


def warp_wide(code: Code) -> Op | None:
    """The first instruction that all 32 threads of a warp take part in, None where there is none."""
    full = {op.operands[0].register for op in code.ops if _sets_full(op) and isinstance(op.operands[0], Reg)}
    for op in code.ops:
        if op.opcode in WHOLE or (op.opcode in MASKED and "sync" in op.mods and _is_full(op.operands[-1], full)):
            return op
    return None


def _sets_full(op: Op) -> bool:
    return op.opcode == "mov" and len(op.operands) == 2 and _is_full(op.operands[1], set())


def _is_full(operand: Operand | None, full: set[Register]) -> bool:
    """Whether ``operand`` is a mask of all threads: the number, or one of the registers that hold it."""
    if isinstance(operand, Int):
        return operand.value & _FULL == _FULL
    return isinstance(operand, Reg) and operand.register in full
