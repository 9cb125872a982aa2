"""st.bulk: shared memory set to zero (PTX ISA 9.7.9)."""

from __future__ import annotations

from teenycli.devices.cpu.gather import require_locate
from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.native import COLD, each_lane
from teenycli.devices.cpu.ops.access import space_of
from teenycli.devices.cpu.ops.async_copies import access_at, full_address
from teenycli.devices.cpu.ops.parts import part_bits, take_part
from teenycli.devices.cpu.program import Inst
from teenycli.devices.cpu.registry import lowers
from teenycli.devices.cpu.value import Unit
from teenycli.ptx.code import Mem


@lowers("st", takes=lambda mods: "bulk" in mods)
def _st_bulk(x: Lowering, inst: Inst) -> None:
    """Without a space the address is generic. Of a size that is no multiple of 8 the rest is left alone."""
    w, g = x.w, x.unit.group
    window = "shared" if space_of(inst.op.mods) == "shared" else "generic"
    mem = inst.op.operands[0]
    assert isinstance(mem, Mem)
    access, _ = access_at(x, inst, mem, window, 8, store=True)
    lanes, sizes = w.lanes(full_address(x, access, mem)), w.lanes(x.read(inst.op.operands[1], "i64"))
    bits, name = x.bits_of(x.exec), _helper(x.unit, access.window)
    for part in range(w.width // g):
        given = [f"<{g} x i64> {take_part(x, text, 'i64', part)}" for text in (lanes, sizes)]
        mask = part_bits(x, bits, part)
        w.line(f"call void @{name}(ptr %ctx, {', '.join(given)}, i{g} {mask}, i32 {x.site()}, i32 {part * g})")
    x.check_dead()


def _helper(unit: Unit, window: str) -> str:
    name = f"teeny.fill.{window}"
    if name in unit.helpers:
        return name
    locator, g = require_locate(unit, f"{window}.store", run=True), unit.group
    unit.declare(f"llvm.cttz.i{g}", f"i{g}", [f"i{g}", "i1"])
    body = f"""
  %first = extractelement <{g} x i64> %addresses, i32 %lane
  %given = extractelement <{g} x i64> %sizes, i32 %lane
  %size = and i64 %given, -8
  %thread = add i32 %lane, %lane0
  %none = icmp eq i64 %size, 0
  br i1 %none, label %next, label %write
write:
  %host = call i64 @{locator}(ptr %ctx, i64 %first, i64 %size, i64 8, i32 %site, i32 %thread)
  %dead = icmp eq i64 %host, 0
  br i1 %dead, label %out, label %go
go:
  %done = phi i64 [ 0, %write ], [ %after, %go ]
  %at = add i64 %host, %done
  %p = inttoptr i64 %at to ptr
  store i64 0, ptr %p, align 8
  %after = add i64 %done, 8
  %more = icmp ult i64 %after, %size
  br i1 %more, label %go, label %next
next:
  br label %head"""
    unit.helpers[name] = (
        f"define internal void @{name}(ptr %ctx, <{g} x i64> %addresses, <{g} x i64> %sizes, i{g} %mask, i32 %site, "
        f"i32 %lane0) {COLD} #0 {{{each_lane(g, body)}}}"
    )
    return name
