"""Out-of-line memory access: any addresses, any mask, checked lane by lane. What the inline forms do not cover.

May import ``layout``, ``native`` and ``value``.
"""

from __future__ import annotations

from ctypes import sizeof

from teenycli.devices.cpu.layout import ID_SHIFT, OFFSET_MASK, Entry
from teenycli.devices.cpu.native import COLD, ENTRY, FAULT, context_at, each_lane, locate
from teenycli.devices.cpu.value import Unit


def require_locate(unit: Unit, space: str, *, run: bool = False) -> str:
    """The unit's ``teeny.locate``, or that of a ``run`` of bytes, for a space: ``shared``, ``local``, ``generic``, each
    with ``.store``."""
    unit.helpers.setdefault("fault", FAULT)
    unit.helpers.setdefault(f"locate.{space}", locate(space))
    return f"teeny.locate.run.{space}" if run else f"teeny.locate.{space}"


def require_gather(unit: Unit, space: str, bits: int) -> str:
    """``<G x iN> @teeny.gather…(ctx, addresses, mask, site, first lane, span, delta)``: an element of each lane.

    ``span`` is the bytes of the lane's whole access, which is checked; the element lies ``delta`` bytes into it.
    """
    return _require(unit, space, bits, store=False)


def require_scatter(unit: Unit, space: str, bits: int) -> str:
    """``void @teeny.scatter…``, as :func:`require_gather`, with the values after the addresses."""
    return _require(unit, f"{space}.store", bits, store=True)


def require_hosts(unit: Unit, space: str) -> str:
    """``i1 @teeny.hosts…(ctx, addresses, mask, site, first lane, span, to)``: where each acting lane's access lies.

    Host addresses go to ``to``, an i64 a lane; false after a fault.
    """
    name = f"teeny.hosts.{space}"
    if name not in unit.helpers:
        locator = require_locate(unit, space)
        unit.declare(f"llvm.cttz.i{unit.group}", f"i{unit.group}", [f"i{unit.group}", "i1"])
        unit.helpers[name] = _hosts_text(name, locator, space, unit.group)
    return name


def _one_host(locator: str, g: int, dead: str, good: str) -> str:
    """Text for ``%host``, where the access of ``%lane`` lies: on to ``good``, or out with ``dead`` after a fault."""
    return f"""\
  %address = extractelement <{g} x i64> %addresses, i32 %lane
  %thread = add i32 %lane, %lane0
  %host = call i64 @{locator}(ptr %ctx, i64 %address, i64 %span, i32 %site, i32 %thread)
  %dead = icmp eq i64 %host, 0
  br i1 %dead, label %gone, label %{good}
gone:
  {dead}"""


def _hosts_text(name: str, locator: str, space: str, g: int) -> str:
    vec = f"<{g} x i64>"
    slow = each_lane(
        g,
        f"""
{_one_host(locator, g, "ret i1 false", "next")}
next:
  %mine = getelementptr i64, ptr %to, i32 %lane
  store i64 %host, ptr %mine
  br label %head""",
        result="ret i1 true",
        entry="slow",
    )
    params = f"ptr %ctx, {vec} %addresses, i{g} %mask, i32 %site, i32 %lane0, i64 %span, ptr %to"
    return f"""
define internal i1 @{name}({params}) nounwind #0 {{
entry:
  %none = icmp eq i{g} %mask, 0
  br i1 %none, label %nothing, label %some
nothing:
  ret i1 true
some:
{_together(space, g)}
fast:
  %hosts = add {vec} %bases, %offs
  store {vec} %hosts, ptr %to, align 8
  ret i1 true
{slow}}}
"""


def _together(space: str, g: int) -> str:
    """Text that tests the acting lanes all at once: to ``fast`` if they lie aligned in one buffer, else to ``slow``."""
    vec = f"<{g} x i64>"
    return f"""
  %m = bitcast i{g} %mask to <{g} x i1>
{_bounds(space.removesuffix(".store"), g, space.endswith(".store"))}
  %enough = icmp uge i64 %size, %span
  %limit = sub i64 %size, %span
  %lv = insertelement {vec} poison, i64 %limit, i32 0
  %limits = shufflevector {vec} %lv, {vec} poison, <{g} x i32> zeroinitializer
  %past = icmp ugt {vec} %offs, %limits
  %low = sub i64 %span, 1
  %wv = insertelement {vec} poison, i64 %low, i32 0
  %lows = shufflevector {vec} %wv, {vec} poison, <{g} x i32> zeroinitializer
  %rests = and {vec} %addresses, %lows
  %odds = icmp ne {vec} %rests, zeroinitializer
  %bads = or <{g} x i1> %past, %odds
  %wrongs = and <{g} x i1> %bads, %m
  %wrong = bitcast <{g} x i1> %wrongs to i{g}
  %right = icmp eq i{g} %wrong, 0
  %good = and i1 %right, %enough
  br i1 %good, label %fast, label %slow"""


def _require(unit: Unit, space: str, bits: int, *, store: bool) -> str:
    name = f"teeny.{'scatter' if store else 'gather'}.{space}.i{bits}"
    if name not in unit.helpers:
        locator = require_locate(unit, space)
        group = unit.group
        unit.declare(f"llvm.cttz.i{group}", f"i{group}", [f"i{group}", "i1"])
        unit.helpers[name] = _text(name, locator, space, group, bits, store, unit)
    return name


def _text(name: str, locator: str, space: str, g: int, bits: int, store: bool, unit: Unit) -> str:
    vec, kind = f"<{g} x i64>", f"<{g} x i{bits}>"
    returns = "void" if store else kind
    values = f", {kind} %values" if store else ""
    nothing = "ret void" if store else f"ret {kind} zeroinitializer"
    pointers = f"<{g} x ptr>"
    align = bits // 8
    if store:
        unit.declare(f"llvm.masked.scatter.v{g}i{bits}.v{g}p0", "void", [kind, pointers, f"<{g} x i1>"])
        move = f"""
  call void @llvm.masked.scatter.v{g}i{bits}.v{g}p0({kind} %values, {pointers} align {align} %ptrs, <{g} x i1> %m)
  ret void"""
        one = f"""
  %value = extractelement {kind} %values, i32 %lane
  store i{bits} %value, ptr %p, align {align}
  br label %next"""
    else:
        unit.declare(f"llvm.masked.gather.v{g}i{bits}.v{g}p0", kind, [pointers, f"<{g} x i1>", kind])
        gathered = f"{pointers} align {align} %ptrs, <{g} x i1> %m, {kind} zeroinitializer"
        move = f"""
  %all = call {kind} @llvm.masked.gather.v{g}i{bits}.v{g}p0({gathered})
  ret {kind} %all"""
        one = f"""
  %value = load i{bits}, ptr %p, align {align}
  %more = insertelement {kind} %sofar, i{bits} %value, i32 %lane
  br label %next"""
    slow = each_lane(
        g,
        f"""
{_one_host(locator, g, nothing, "go")}
go:
  %at = add i64 %host, %delta
  %p = inttoptr i64 %at to ptr
{one}
next:
  br label %head""",
        carries="" if store else f"\n  %sofar = phi {kind} [ zeroinitializer, %slow ], [ %more, %next ]",
        result="ret void" if store else f"ret {kind} %sofar",
        entry="slow",
    )
    rest = f"i{g} %mask, i32 %site, i32 %lane0, i64 %span, i64 %delta"
    return f"""
define internal {returns} @{name}(ptr %ctx, {vec} %addresses{values}, {rest}) {COLD} #0 {{
entry:
  %none = icmp eq i{g} %mask, 0
  br i1 %none, label %nothing, label %some
nothing:
  {nothing}
some:
{_together(space, g)}
fast:
  %dv = insertelement {vec} poison, i64 %delta, i32 0
  %deltas = shufflevector {vec} %dv, {vec} poison, <{g} x i32> zeroinitializer
  %hosts0 = add {vec} %bases, %offs
  %hosts = add {vec} %hosts0, %deltas
  %ptrs = inttoptr {vec} %hosts to {pointers}{move}
{slow}}}
"""


def _bounds(space: str, g: int, store: bool) -> str:
    """Text that finds ``%bases``, ``%size`` and ``%offs`` for all lanes, if they agree on a buffer.

    The window of local memory has no size in the table, so generic addresses in it go lane by lane.
    """
    vec = f"<{g} x i64>"
    splat = f"""
  %bv = insertelement {vec} poison, i64 %base, i32 0
  %bases = shufflevector {vec} %bv, {vec} poison, <{g} x i32> zeroinitializer"""
    if space == "shared":
        return f"""
  %bp = getelementptr i8, ptr %ctx, i64 {context_at("shared")}
  %base = load i64, ptr %bp
  %sp = getelementptr i8, ptr %ctx, i64 {context_at("shared_size")}
  %size = load i64, ptr %sp
  %offs = add {vec} %addresses, zeroinitializer{splat}"""
    if space == "local":
        lanes = ", ".join(f"i64 {k}" for k in range(g))
        return f"""
  %lp = getelementptr i8, ptr %ctx, i64 {context_at("local")}
  %local = load i64, ptr %lp
  %sp = getelementptr i8, ptr %ctx, i64 {context_at("local_size")}
  %size = load i64, ptr %sp
  %wp = getelementptr i8, ptr %ctx, i64 {context_at("warp")}
  %w0 = load i32, ptr %wp
  %w1 = add i32 %w0, %lane0
  %w2 = zext i32 %w1 to i64
  %w3 = mul i64 %w2, %size
  %base = add i64 %local, %w3{splat.replace("%bases", "%bases0")}
  %zv = insertelement {vec} poison, i64 %size, i32 0
  %sizes = shufflevector {vec} %zv, {vec} poison, <{g} x i32> zeroinitializer
  %steps = mul {vec} %sizes, <{lanes}>
  %bases = add {vec} %bases0, %steps
  %offs = add {vec} %addresses, zeroinitializer"""
    return f"""
  %firstbit = call i{g} @llvm.cttz.i{g}(i{g} %mask, i1 true)
  %firstlane = zext i{g} %firstbit to i32
  %a0 = extractelement {vec} %addresses, i32 %firstlane
  %id = lshr i64 %a0, {ID_SHIFT}
  %np = getelementptr i8, ptr %ctx, i64 {context_at("entries")}
  %n = load i64, ptr %np
  %known = icmp ult i64 %id, %n
  %row = select i1 %known, i64 %id, i64 0
  %tp = getelementptr i8, ptr %ctx, i64 {context_at("table")}
  %table = load ptr, ptr %tp
  %place = mul i64 %row, {sizeof(Entry)}
  %rowp = getelementptr i8, ptr %table, i64 %place
  %base = load i64, ptr %rowp
  %sp = getelementptr i8, ptr %rowp, i64 {ENTRY["writable" if store else "size"]}
  %size = load i64, ptr %sp{splat}
  %start = and i64 %a0, {~OFFSET_MASK}
  %sv = insertelement {vec} poison, i64 %start, i32 0
  %starts = shufflevector {vec} %sv, {vec} poison, <{g} x i32> zeroinitializer
  %offs = sub {vec} %addresses, %starts"""
