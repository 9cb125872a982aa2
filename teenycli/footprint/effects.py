"""What instructions do in memory, as far as buffers go: ``ptx.effects``, seen from a walk. May import
``footprint.trace`` and ``ptx``."""

from __future__ import annotations

from teenycli.footprint.trace import Access
from teenycli.ptx.code import Mem, Op, Vec
from teenycli.ptx.effects import Effect, effects_of
from teenycli.ptx.model import Float, Int, type_width

#: Spaces in which no buffer lies, and those in which no walk looks at single accesses.
_OWN = frozenset({"shared", "local", "param", "const"})
_PASSED_BY = _OWN - {"shared"}
_READS, _WRITES = frozenset({"load", "atomic", "other"}), frozenset({"store", "atomic", "other"})
#: What changes no byte that is looked at again.
_HARMLESS = frozenset({"mbarrier", "discard"})


def space_of(op: Op) -> str:
    """The state space of a memory operand without ``::cta`` and the like, and empty for a generic address. Of a copy
    it is where it reads."""
    return op.mods.get("src" if op.opcode == "cp" else "space", "").partition("::")[0]


def effect_of(op: Op) -> tuple[bool, bool]:
    """Whether an instruction may read, and may write, a buffer."""
    kinds = {e.kind for e in effects_of(op) if not e.handle and _space(e) not in _OWN and op.opcode not in _HARMLESS}
    return bool(kinds & _READS), bool(kinds & _WRITES)


def access_of(op: Op) -> tuple[Access, Mem] | None:
    """The access that an instruction makes, and the operand with its address; None for one whose extent is not known
    here (a bulk or tensor copy, a fragment of a matrix), and for one in memory that no walk looks at."""
    for effect in effects_of(op):
        # Of an asynchronous copy it is the reading that leads to a buffer.
        is_plain = effect.opcode == "" and effect.kind != "other"
        if (is_plain or (effect.opcode == "cp.async" and effect.kind == "load")) and _space(effect) not in _PASSED_BY:
            mem = op.operands[effect.place]
            assert isinstance(mem, Mem)
            size = (type_width(effect.type) or 64) // 8 * effect.count
            return Access(
                op, size, size, effect.kind in _READS, effect.kind in _WRITES,
                atomic=effect.kind == "atomic", is_shared=space_of(op) == "shared",
                shares=effect.kind == "atomic" or _is_constant(op),
            ), mem  # fmt: skip
    return None


def _is_constant(op: Op) -> bool:
    """Whether a store is of numbers that are written out."""
    value = op.operands[-1] if op.opcode == "st" else None
    return all(isinstance(item, Int | Float) for item in (value.items if isinstance(value, Vec) else (value,)))


def _space(effect: Effect) -> str:
    return effect.space.partition("::")[0]
