"""What instructions do in memory, as far as buffers go. May import ``footprint.trace`` and ``ptx``."""

from __future__ import annotations

from teenycli.footprint.trace import Access
from teenycli.ptx.code import Mem, Op, Vec
from teenycli.ptx.model import Int, type_width

_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
#: Spaces in which no buffer lies.
_OWN = frozenset({"shared", "local", "param", "const"})
_HARMLESS = frozenset({"prefetch", "prefetchu", "mbarrier", "discard", "applypriority", "createpolicy"})


def space_of(op: Op) -> str:
    """The state space of a memory operand without ``::cta`` and the like, and empty for a generic address. Of a copy
    it is where it reads."""
    return op.mods.get("src" if op.opcode == "cp" else "space", "").partition("::")[0]


def effect_of(op: Op) -> tuple[bool, bool]:
    """Whether an instruction may read, and may write, a buffer."""
    if op.opcode == "cp":
        writes = op.mods.get("dst") == "global"
        return (op.mods.get("src") == "global" and "dst" in op.mods) or (writes and "reduce" in op.mods), writes
    if space_of(op) in _OWN or op.opcode in _HARMLESS:
        return False, False
    return op.opcode != "st", op.opcode not in ("ld", "ldu")


def access_of(op: Op) -> tuple[Access, Mem] | None:
    """The access that an instruction makes, and the operand with its address; None for one whose extent is not known
    here (a tensor copy, a fragment of a matrix), and for one in memory that no walk looks at."""
    if op.opcode in ("ld", "ldu", "st"):
        if space_of(op) in ("param", "local", "const"):
            return None
        data, mem = (op.operands[1], op.operands[0]) if op.opcode == "st" else (op.operands[0], op.operands[1])
        size = _size(op) * (len(data.items) if isinstance(data, Vec) else 1)
        made = Access(op, size, size, op.opcode != "st", op.opcode == "st")
    elif op.opcode in ("atom", "red") and "type" in op.mods:
        mem = next(operand for operand in op.operands if isinstance(operand, Mem))
        size = _size(op) * _VECTORS.get(op.mods.get("vec", ""), 1)
        made = Access(op, size, size, True, True, atomic=True)
    elif op.opcode == "cp" and "cop" in op.mods and isinstance(op.operands[2], Int):
        mem, size = op.operands[1], op.operands[2].value
        made = Access(op, size, size, True, False)
    else:
        return None
    assert isinstance(mem, Mem)
    return made, mem


def _size(op: Op) -> int:
    return (type_width(op.mods["type"]) or 64) // 8
