"""Special registers (PTX ISA, "Special Registers").

May import ``lower`` for its type, ``layout``, ``value``, ``unsupported``.
"""

from __future__ import annotations

import platform
import sys
import time
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
    "%nctaid": ("launch", "grid"),
    "%cluster_nctaid": ("launch", "cluster"),
}
_CONSTANTS = {
    "%smid": 0, "%nsmid": 1, "%gridid": 0, "%nwarpid": 32, "%reserved_smem_offset_begin": 0,
    "%reserved_smem_offset_end": 0,
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
        return integer("i32", _CONSTANTS[name])
    if "cluster" in name:
        return _cluster(x, name, _AXES[part])
    if name in ("%envreg1", "%envreg2"):  # where the CUDA headers look for the memory of the grid's barrier
        return Value("i32", x.field("launch", "workspace_high" if name == "%envreg1" else "workspace_low", "i32"), True)
    if name in ("%dynamic_smem_size", "%total_smem_size", "%aggr_smem_size"):
        field = "dynamic_shared" if name == "%dynamic_smem_size" else "total_shared"
        return Value("i32", x.field("launch", field, "i32"), True)
    if name == "%laneid" or name.startswith("%lanemask_"):
        return _lane(x, name)
    if name == "%warpid":
        return x.in_head(register, "i32", True, "lshr i32 %t0, 5")
    if name.startswith("%clock"):
        return _of_64(x, name, _cycles(x))
    if name.startswith("%globaltimer"):
        return _of_64(x, name, _nanoseconds(x))
    if name.startswith(("%envreg", "%pm", "%current_graph")):  # of the driver; counters that nothing drives; no graph
        return integer("i64" if name.endswith(("_64", "_exec")) else "i32", 0)
    assert x.inst is not None
    raise unsupported(x.program.module, f"the special register '{name}'", x.inst.op)


def _cluster(x: Lowering, name: str, axis: int) -> Value:
    """What follows from the places of CTA and cluster in the grid."""
    w = x.w

    def at(structure: str, field: str, axis: int) -> Value:
        return Value("i32", x.field(structure, field, "i32", axis), True)

    def inside(axis: int) -> Value:
        return w.binary("urem", at("ctx", "cta", axis), at("launch", "cluster", axis))

    if name == "%clusterid":
        return w.binary("udiv", at("ctx", "cta", axis), at("launch", "cluster", axis))
    if name == "%nclusterid":
        return w.binary("udiv", at("launch", "grid", axis), at("launch", "cluster", axis))
    if name == "%cluster_ctaid":
        return inside(axis)
    size = at("launch", "cluster_size", 0)
    if name == "%cluster_nctarank":
        return size
    if name == "%is_explicit_cluster":
        return w.compare("icmp ne", size, integer("i32", 1))
    rank = inside(2)
    for lower in (1, 0):
        rank = w.add(w.binary("mul", rank, at("launch", "cluster", lower)), inside(lower))
    return rank


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


def _cycles(x: Lowering) -> Value:
    """The counter of an x86 processor; that of an ARM one is not for programs to read, and the timer serves."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return _nanoseconds(x)
    x.unit.declare("llvm.readcyclecounter", "i64", [])
    return Value("i64", x.w.assign("call i64 @llvm.readcyclecounter()"), True)


def _nanoseconds(x: Lowering) -> Value:
    """The system's clock that never goes back, asked anew at every read."""
    w = x.w
    if sys.platform == "win32":
        x.unit.declare("GetSystemTimePreciseAsFileTime", "void", ["ptr"])
        place = x.in_head(Special("time"), "i64", True, "alloca i64").text
        w.line(f"call void @GetSystemTimePreciseAsFileTime(ptr {place})")
        ticks = Value("i64", w.assign(f"load volatile i64, ptr {place}"), True)
        return w.binary("mul", ticks, integer("i64", 100))
    x.unit.declare("clock_gettime", "i32", ["i32", "ptr"])
    place = x.in_head(Special("time"), "i64", True, "alloca [2 x i64]").text
    w.assign(f"call i32 @clock_gettime(i32 {time.CLOCK_MONOTONIC}, ptr {place})")
    seconds = Value("i64", w.assign(f"load volatile i64, ptr {place}"), True)
    after = w.assign(f"getelementptr i8, ptr {place}, i64 8")
    rest = Value("i64", w.assign(f"load volatile i64, ptr {after}"), True)
    return w.add(w.binary("mul", seconds, integer("i64", 10**9)), rest)


def _of_64(x: Lowering, name: str, now: Value) -> Value:
    """A 64-bit clock, or the half of it that a register of 32 bits is."""
    if name in ("%clock64", "%globaltimer"):
        return now
    if name.endswith("_hi"):
        now = x.w.binary("lshr", now, integer("i64", 32))
    return x.w.cast("trunc", now, "i32")
