"""Which cells may hold a float32 whose NaNs are not canonical yet.

PTX says that a single-precision result that is NaN is 0x7fffffff. Arithmetic on a NaN does not care, so it is made
canonical only where its bits are seen: in a store, an integer operation, a register that also holds loaded bits.

May import ``flow`` and ``program``.
"""

from __future__ import annotations

from teenycli.devices.cpu.flow import Flow
from teenycli.devices.cpu.program import Cell, Handover, Step, cells_read, cells_written
from teenycli.ptx.code import Reg
from teenycli.ptx.model import Float

_ARITHMETIC = frozenset(
    {"add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt", "rsqrt", "neg", "abs", "min", "max", "ex2", "lg2", "sin",
     "cos", "tanh"}
)  # fmt: skip
_COPIES = frozenset({"mov", "selp"})


def _makes_raw(step: Step) -> bool:
    return not isinstance(step, Handover) and step.op.opcode in _ARITHMETIC and step.op.mods.get("type") == "f32"


def _copies(step: Step) -> bool:
    """Whether the step only moves single cells and constants that are no NaNs: no special registers, no addresses."""
    if isinstance(step, Handover):
        return False
    if step.op.opcode not in _COPIES or "vec" in step.op.mods or len(cells_written(step)) != 1:
        return False
    return all(
        isinstance(source, Reg) or (isinstance(source, Float) and source.bits & 0x7FFFFFFF <= 0x7F800000)
        for source in step.op.operands[1:]
    )


def raw_cells(flow: Flow) -> frozenset[Cell]:
    """Cells whose every definition is float32 arithmetic, a constant or a copy of such a cell."""
    defs: dict[Cell, list[Step]] = {}
    for block in flow.blocks:
        for step in block.steps:
            for cell in cells_written(step):
                defs.setdefault(cell, []).append(step)
    found = {
        cell
        for cell, steps in defs.items()
        if cell.type in ("f32", "b32") and all(_makes_raw(s) or _copies(s) for s in steps)
    }
    changed = True
    while changed:
        changed = False
        for cell in list(found):
            for step in defs[cell]:
                sources = [] if _makes_raw(step) else [c for c in cells_read(step) if c.type != "pred"]
                if any(source not in found for source in sources):
                    found.discard(cell)
                    changed = True
    return frozenset(found)
