"""The part of the runtime that is generated code: checked memory access, faults, barriers, the driver of a launch.

Every function here returns LLVM text, for vectors of the unit's width.

May import ``layout`` and ``value``.
"""

from __future__ import annotations

from ctypes import sizeof

from teenycli.devices.cpu.layout import (
    ID_SHIFT,
    LOCAL_ID,
    OFFSET_MASK,
    RANK_SHIFT,
    SHARED_ID,
    Context,
    Entry,
    FaultKind,
    Launch,
    offset,
)
from teenycli.devices.cpu.value import Writer

COLD = "cold noinline nounwind"


def _at(structure: str, field: str, index: int = 0) -> int:
    return offset({"ctx": Context, "launch": Launch}[structure], field, index)


def context_at(field: str, index: int = 0) -> int:
    """Byte offset of a field of the context."""
    return offset(Context, field, index)


#: Byte offsets in a row of the address table.
ENTRY = {name: getattr(Entry, name).offset for name, _ in Entry._fields_}


def first_lane(w: Writer, bits: str) -> str:
    """The number of the lowest lane in a mask given as an integer, as an i32."""
    name = f"llvm.cttz.i{w.width}"
    w.unit.declare(name, f"i{w.width}", [f"i{w.width}", "i1"])
    lane = w.assign(f"call i{w.width} @{name}(i{w.width} {bits}, i1 false)")
    return lane if w.width == 32 else w.assign(f"zext i{w.width} {lane} to i32")


#: ``teeny.fault.access``: the first fault of a launch is written down; every warp then finds ``stop`` set. ``size`` is
#: the bytes of an access, ``align`` what must divide its address, ``writes`` whether it changes them. Faults of other
#: kinds are for ``teeny.fault``.
FAULT = f"""
define internal void @teeny.fault(ptr %ctx, i32 %kind, i32 %site, i64 %address, i32 %lane) {COLD} {{
  call void @teeny.fault.access(ptr %ctx, i32 %kind, i32 %site, i64 %address, i32 %lane, i64 0, i64 1, i32 0)
  ret void
}}

define internal void @teeny.fault.access(ptr %ctx, i32 %kind, i32 %site, i64 %address, i32 %lane, i64 %size,
    i64 %align, i32 %writes) {COLD} {{
  %lp = getelementptr i8, ptr %ctx, i64 {_at("ctx", "launch")}
  %launch = load ptr, ptr %lp
  %dp = getelementptr i8, ptr %ctx, i64 {_at("ctx", "dead")}
  store i32 1, ptr %dp
  %cp = getelementptr i8, ptr %launch, i64 {_at("launch", "claimed")}
  %pair = cmpxchg ptr %cp, i32 0, i32 1 seq_cst seq_cst, align 4
  %won = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %won, label %write, label %done
write:
  %k = getelementptr i8, ptr %launch, i64 {_at("launch", "fault_kind")}
  store i32 %kind, ptr %k
  %s = getelementptr i8, ptr %launch, i64 {_at("launch", "fault_site")}
  store i32 %site, ptr %s
  %a = getelementptr i8, ptr %launch, i64 {_at("launch", "fault_address")}
  store i64 %address, ptr %a, align 4
  %z = getelementptr i8, ptr %launch, i64 {_at("launch", "fault_size")}
  store i64 %size, ptr %z, align 4
  %g = getelementptr i8, ptr %launch, i64 {_at("launch", "fault_align")}
  %narrow = trunc i64 %align to i32
  store i32 %narrow, ptr %g
  %v = getelementptr i8, ptr %launch, i64 {_at("launch", "fault_writes")}
  store i32 %writes, ptr %v
  %from = getelementptr i8, ptr %ctx, i64 {_at("ctx", "cta")}
  %to = getelementptr i8, ptr %launch, i64 {_at("launch", "fault_cta")}
  %cta = load <3 x i32>, ptr %from, align 4
  store <3 x i32> %cta, ptr %to, align 4
  %tp = getelementptr i8, ptr %ctx, i64 {_at("ctx", "warp")}
  %first = load i32, ptr %tp
  %thread = add i32 %first, %lane
  %t = getelementptr i8, ptr %launch, i64 {_at("launch", "fault_thread")}
  store i32 %thread, ptr %t
  %sp = getelementptr i8, ptr %launch, i64 {_at("launch", "stop")}
  store atomic i32 1, ptr %sp seq_cst, align 4
  br label %done
done:
  ret void
}}
"""


def locate(space: str) -> str:
    """``teeny.locate.SPACE``: one lane's access checked; the host address, or 0 after a fault has been reported.

    ``span`` is the whole size in bytes of the access, a power of two, which must divide its address.
    ``teeny.locate.run.SPACE`` is for accesses of any size, with ``align`` for what must divide their address.
    """
    window = {
        "shared": ("shared", "shared_size"),
        "local": ("local", "local_size"),
    }.get(space.removesuffix(".store"))
    field = ENTRY["writable" if space.endswith(".store") else "size"]
    if window is None:
        find = f"""
  %id = lshr i64 %address, {ID_SHIFT}
  %off = and i64 %address, {OFFSET_MASK}
  %islocal = icmp eq i64 %id, {LOCAL_ID}
  br i1 %islocal, label %private, label %mapped
private:
{_private("a")}
  br label %check
mapped:
  %np = getelementptr i8, ptr %ctx, i64 {_at("ctx", "entries")}
  %n = load i64, ptr %np
  %known = icmp ult i64 %id, %n
  %row = select i1 %known, i64 %id, i64 0
  %tp = getelementptr i8, ptr %ctx, i64 {_at("ctx", "table")}
  %table = load ptr, ptr %tp
  %place = mul i64 %row, {sizeof(Entry)}
  %rowp = getelementptr i8, ptr %table, i64 %place
  %mbase = load i64, ptr %rowp
  %sp = getelementptr i8, ptr %rowp, i64 {field}
  %msize = load i64, ptr %sp
  br label %check
check:
  %base = phi i64 [ %abase, %private ], [ %mbase, %mapped ]
  %size = phi i64 [ %asize, %private ], [ %msize, %mapped ]"""
    elif window[0] == "local":
        find = f"""
  %off = add i64 %address, 0
{_private("")}"""
    else:
        find = f"""
  %off = add i64 %address, 0
  %bp = getelementptr i8, ptr %ctx, i64 {_at("ctx", window[0])}
  %base = load i64, ptr %bp
  %sp = getelementptr i8, ptr %ctx, i64 {_at("ctx", window[1])}
  %size = load i64, ptr %sp"""
    writes = int(space.endswith(".store"))
    tag = {"shared": SHARED_ID, "local": LOCAL_ID}.get(space.removesuffix(".store"), 0) << ID_SHIFT
    return f"""
define internal i64 @teeny.locate.{space}(ptr %ctx, i64 %address, i64 %span, i32 %site, i32 %lane) alwaysinline {{
  %host = call i64 @teeny.locate.run.{space}(ptr %ctx, i64 %address, i64 %span, i64 %span, i32 %site, i32 %lane)
  ret i64 %host
}}

define internal i64 @teeny.locate.run.{space}(ptr %ctx, i64 %address, i64 %span, i64 %align, i32 %site, i32 %lane)
    {COLD} {{
entry:{find}
  %end = add i64 %off, %span
  %wrapped = icmp ult i64 %end, %off
  %past = icmp ugt i64 %end, %size
  %bad = or i1 %wrapped, %past
  %low = sub i64 %align, 1
  %rest = and i64 %address, %low
  %odd = icmp ne i64 %rest, 0
  %wrongly = or i1 %bad, %odd
  br i1 %wrongly, label %fault, label %fine
fine:
  %host = add i64 %base, %off
  ret i64 %host
fault:
{_peer(space.removesuffix(".store"))}
wrong:
  %kind = select i1 %bad, i32 {int(FaultKind.ACCESS)}, i32 {int(FaultKind.MISALIGNED)}
  %full = add i64 %address, {tag}
  call void @teeny.fault.access(ptr %ctx, i32 %kind, i32 %site, i64 %full, i32 %lane, i64 %span, i64 %align,
    i32 {writes})
  ret i64 0
}}
"""


def _peer(space: str) -> str:
    """Text that tries an address past the own shared memory as one of another CTA of the cluster."""
    if space == "local":
        return "  br label %wrong"
    ours = f"icmp eq i64 %id, {SHARED_ID}" if space == "generic" else "icmp eq i64 0, 0"
    return f"""
  %ours = {ours}
  %rank = lshr i64 %off, {RANK_SHIFT}
  %index = sub i64 %rank, 1
  %pcp = getelementptr i8, ptr %ctx, i64 {_at("ctx", "peer_count")}
  %pc32 = load i32, ptr %pcp
  %pc = zext i32 %pc32 to i64
  %there = icmp ult i64 %index, %pc
  %peered = and i1 %there, %ours
  br i1 %peered, label %peer, label %wrong
peer:
  %psp = getelementptr i8, ptr %ctx, i64 {_at("ctx", "peers")}
  %peers = load ptr, ptr %psp
  %pp = getelementptr i64, ptr %peers, i64 %index
  %pbase = load i64, ptr %pp
  %poff = and i64 %off, {(1 << RANK_SHIFT) - 1}
  %pend = add i64 %poff, %span
  %szp = getelementptr i8, ptr %ctx, i64 {_at("ctx", "shared_size")}
  %ssize = load i64, ptr %szp
  %pin = icmp ule i64 %pend, %ssize
  %even = xor i1 %odd, true
  %pgood = and i1 %pin, %even
  br i1 %pgood, label %far, label %wrong
far:
  %phost = add i64 %pbase, %poff
  ret i64 %phost"""


def _private(prefix: str) -> str:
    """Base and size of one lane's local memory."""
    return f"""
  %{prefix}lb = getelementptr i8, ptr %ctx, i64 {_at("ctx", "local")}
  %{prefix}local = load i64, ptr %{prefix}lb
  %{prefix}ls = getelementptr i8, ptr %ctx, i64 {_at("ctx", "local_size")}
  %{prefix}size = load i64, ptr %{prefix}ls
  %{prefix}wp = getelementptr i8, ptr %ctx, i64 {_at("ctx", "warp")}
  %{prefix}first = load i32, ptr %{prefix}wp
  %{prefix}thread = add i32 %{prefix}first, %lane
  %{prefix}wide = zext i32 %{prefix}thread to i64
  %{prefix}skip = mul i64 %{prefix}wide, %{prefix}size
  %{prefix}base = add i64 %{prefix}local, %{prefix}skip"""


def each_lane(group: int, body: str, *, carries: str = "", result: str = "ret void", entry: str = "entry") -> str:
    """A loop over the set bits of ``%mask``; ``body`` sees ``%lane`` and ends by going to ``head`` from ``next``."""
    return f"""
{entry}:
  br label %head
head:
  %left = phi i{group} [ %mask, %{entry} ], [ %fewer, %next ]{carries}
  %empty = icmp eq i{group} %left, 0
  br i1 %empty, label %out, label %lanes
lanes:
  %bit = call i{group} @llvm.cttz.i{group}(i{group} %left, i1 true)
  %lane = zext i{group} %bit to i32
  %minus = sub i{group} %left, 1
  %fewer = and i{group} %left, %minus
{body}
out:
  {result}
"""
