"""Special registers (PTX ISA, "Special Registers") for a cluster of one CTA.

May import ``lower`` for its type, ``layout``, ``value``, ``unsupported``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from teenycli.devices.cpu.unsupported import unsupported
from teenycli.devices.cpu.value import Value, integer
from teenycli.ptx.code import Special

if TYPE_CHECKING:
    from teenycli.devices.cpu.lower import Lowering

_AXES = {"x": 0, "y": 1, "z": 2, None: 0}
_FIELDS = {
    "%ntid": ("launch", "block"),
    "%ctaid": ("ctx", "cta"),
    "%clusterid": ("ctx", "cta"),
    "%nctaid": ("launch", "grid"),
    "%nclusterid": ("launch", "grid"),
}
_CONSTANTS = {
    "%smid": 0, "%nsmid": 1, "%gridid": 0, "%cluster_ctarank": 0, "%cluster_nctarank": 1, "%cluster_ctaid": 0,
    "%cluster_nctaid": 1, "%nwarpid": 32, "%reserved_smem_offset_begin": 0, "%reserved_smem_offset_end": 0,
    "%reserved_smem_offset_cap": 0, "%reserved_smem_offset_0": 0, "%reserved_smem_offset_1": 0,
}  # fmt: skip


def special(x: Lowering, register: Special) -> Value:
    """The value of a special register. Raises TeenyError ``unsupported-instruction`` for one that is not here."""
    name, part = register.name, register.part
    if part == "w":
        return integer("i32", 0)
    if name in _FIELDS:
        structure, field = _FIELDS[name]
        return Value("i32", x.field(structure, field, "i32", _AXES[part]), True)
    if name == "%tid":
        return _tid(x, _AXES[part])
    if name in _CONSTANTS:
        return integer("i32", 1 if name == "%cluster_nctaid" else _CONSTANTS[name])
    if name == "%is_explicit_cluster":
        return integer("i1", 0)
    if name in ("%dynamic_smem_size", "%total_smem_size", "%aggr_smem_size"):
        field = "dynamic_shared" if name == "%dynamic_smem_size" else "total_shared"
        return Value("i32", x.field("launch", field, "i32"), True)
    if name == "%laneid" or name.startswith("%lanemask_"):
        return _lane(x, name)
    if name == "%warpid":
        return x.in_head(register, "i32", True, "lshr i32 %t0, 5")
    if name.startswith(("%clock", "%globaltimer")):
        return _clock(x, name)
    assert x.inst is not None
    raise unsupported(x.program.module, f"the special register '{name}'", x.inst.op)


def _tid(x: Lowering, axis: int) -> Value:
    """Thread indices come from a table made once a launch: a vector load instead of divisions."""
    key = Special(f"tid{axis}")
    if key not in x.known_specials:
        table = x.field("launch", "tids", "i64", axis)
        lanes = x.w.vector("i32")
        x.w.head += [
            f"  %tidp{axis} = inttoptr i64 {table} to ptr",
            f"  %tidq{axis} = getelementptr i32, ptr %tidp{axis}, i32 %t0",
            f"  %tid{axis} = load {lanes}, ptr %tidq{axis}, align 4, !invariant.load !2",
        ]
        x.known_specials[key] = Value("i32", f"%tid{axis}", False)
    return x.known_specials[key]


def _lane(x: Lowering, name: str) -> Value:
    """``%laneid``: a warp's lanes may be one of the parts of a 32-lane warp where no instruction needs it whole."""
    w = x.w
    part = x.in_head(Special("part"), "i32", True, "and i32 %t0, 31")
    lane = w.add(w.varying(part), Value("i32", w.iota(), False))
    if name == "%laneid":
        return lane
    kind = name.removeprefix("%lanemask_")
    one = w.binary("shl", integer("i32", 1), lane)
    below = w.sub(one, integer("i32", 1))
    if kind == "eq":
        return one
    if kind == "lt":
        return below
    if kind == "le":
        return w.either(one, below)
    return w.negate(below) if kind == "ge" else w.negate(w.either(one, below))


def _clock(x: Lowering, name: str) -> Value:
    """Clocks move forward: the processor's own counter serves for all of them."""
    x.unit.declare("llvm.readcyclecounter", "i64", [])
    now = Value("i64", x.w.assign("call i64 @llvm.readcyclecounter()"), True)
    if name in ("%clock64", "%globaltimer"):
        return now
    if name.endswith("_hi"):
        now = x.w.binary("lshr", now, integer("i64", 32))
    return x.w.cast("trunc", now, "i32")
