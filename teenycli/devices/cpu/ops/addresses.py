"""Addresses as values, and hints to caches (PTX ISA 9.7.9: cvta, isspacep, mapa, getctarank, prefetch)."""

from __future__ import annotations

from teenycli.devices.cpu.layout import FIRST_VARIABLE, ID_SHIFT, LOCAL_ID, OFFSET_MASK, PARAM_ID, RANK_SHIFT, SHARED_ID
from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.ops.access import space_of
from teenycli.devices.cpu.program import Inst
from teenycli.devices.cpu.registry import lowers
from teenycli.devices.cpu.specials import special
from teenycli.devices.cpu.value import integer
from teenycli.ptx.code import Special
from teenycli.ptx.model import TYPE_SIZES, Space

_RANK_MASK = 0xFF
_WINDOW_IDS = {"shared": SHARED_ID, "local": LOCAL_ID, "param": PARAM_ID}


@lowers("cvta")
def _cvta(x: Lowering, inst: Inst) -> None:
    """Windows have an id of their own in generic addresses; global and const addresses are generic already."""
    mods, w = inst.op.mods, x.w
    kind = f"i{8 * TYPE_SIZES[mods['type']]}"
    value = x.read(inst.op.operands[1], kind)
    window = _WINDOW_IDS.get(space_of(mods))
    if window is not None and kind == "i64":
        if "to" in mods:
            value = w.both(value, integer("i64", OFFSET_MASK))
        else:
            value = w.either(value, integer("i64", window << ID_SHIFT))
    x.write(inst.op.operands[0], value)


@lowers("isspacep")
def _isspacep(x: Lowering, inst: Inst) -> None:
    w = x.w
    address = x.read(inst.op.operands[1], "i64")
    number = w.binary("lshr", address, integer("i64", ID_SHIFT))
    space = space_of(inst.op.mods)
    if space in _WINDOW_IDS:
        window = number
        if space == "shared" and "shared::cluster" not in inst.op.mods.values():
            # That of another CTA of the cluster has a rank (PTX ISA 9.7.9, isspacep: ``.shared`` is ``::cta``).
            window = w.binary("lshr", address, integer("i64", RANK_SHIFT))
            number = integer("i64", SHARED_ID << ID_SHIFT - RANK_SHIFT)
        else:
            number = integer("i64", _WINDOW_IDS[space])
        result = w.compare("icmp eq", window, number)
    else:
        constants = [k for k, v in x.program.variables.items() if v.space is Space.CONST]
        in_const = integer("i1", 0)
        for k in constants:
            in_const = w.either(w.varying(in_const), w.compare("icmp eq", w.varying(number), integer("i64", k)))
        result = in_const
        if space == "global":
            mapped = w.compare("icmp uge", number, integer("i64", FIRST_VARIABLE))
            result = w.both(mapped, w.negate(in_const)) if constants else mapped
    x.write(inst.op.operands[0], result)


@lowers("prefetch", "prefetchu", "applypriority", "discard")
def _nothing(*_: object) -> None:
    """Hints to a cache: nothing to do."""


@lowers("mapa")
def _mapa(x: Lowering, inst: Inst) -> None:
    """The same place in the shared memory of another CTA of the cluster: its rank stands above the offset."""
    w, kind = x.w, f"i{8 * TYPE_SIZES[inst.op.mods['type']]}"
    address, rank = x.read(inst.op.operands[1], kind), x.read(inst.op.operands[2], "i32")
    own = special(x, Special("%cluster_ctarank"))
    plain = w.both(address, integer(kind, ~(_RANK_MASK << RANK_SHIFT)))
    above = w.binary("shl", w.add(w.resize(rank, kind), integer(kind, 1)), integer(kind, RANK_SHIFT))
    x.write(inst.op.operands[0], w.select(w.compare("icmp eq", rank, own), plain, w.either(plain, above)))


@lowers("getctarank")
def _getctarank(x: Lowering, inst: Inst) -> None:
    w, kind = x.w, f"i{8 * TYPE_SIZES[inst.op.mods['type']]}"
    above = w.binary("lshr", x.read(inst.op.operands[1], kind), integer(kind, RANK_SHIFT))
    number = w.both(w.resize(above, "i32"), integer("i32", _RANK_MASK))
    own = special(x, Special("%cluster_ctarank"))
    here = w.compare("icmp eq", number, integer("i32", 0))
    x.write(inst.op.operands[0], w.select(here, own, w.sub(number, integer("i32", 1))))
