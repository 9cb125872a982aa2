"""Cluster launch control (PTX ISA 9.7.13, clusterlaunchcontrol): a CTA takes over one that has not begun.

Taken is the next CTA that the pool would have been handed. A request fails where none is left, and always in a launch
with clusters of several CTAs, which are handed out otherwise.

The answer of 16 bytes, which PTX leaves open: the CTA's place in the grid, and 1 where there is one.
"""

from __future__ import annotations

from collections.abc import Callable

from teenycli.devices.cpu.layout import RANK_SHIFT, Launch, offset
from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.ops.async_copies import (
    access_at,
    complete_bytes,
    full_address,
    located,
    named_operands,
    window_of,
)
from teenycli.devices.cpu.ops.lanes import each_lane
from teenycli.devices.cpu.program import Inst
from teenycli.devices.cpu.registry import lowers
from teenycli.devices.cpu.value import Value, integer


def _field(x: Lowering, name: str, axis: int = 0) -> Value:
    """A field of the launch as an i64."""
    kind = "i64" if name == "total" else "i32"
    return x.w.resize(Value(kind, x.field("launch", name, kind, axis), True), "i64")


@lowers("clusterlaunchcontrol", takes=lambda mods: "try_cancel" in mods)
def _try_cancel(x: Lowering, inst: Inst) -> None:
    """Each acting lane takes a CTA; the answer, and its bytes, go to its own CTA or to all of the cluster."""
    w = x.w

    def claim(_lane: str, _given: list[str]) -> str:
        place = w.assign(f"getelementptr i8, ptr %launch, i64 {offset(Launch, 'next')}")
        return w.assign(f"atomicrmw add ptr {place}, i64 1 monotonic")

    number = each_lane(x, [], "i64", claim)
    taken = w.compare("icmp slt", number, _field(x, "total"))
    columns, rows = _field(x, "grid", 0), _field(x, "grid", 1)
    row = w.binary("udiv", number, columns)
    z = w.binary("udiv", row, rows)
    y, column = w.sub(row, w.binary("mul", z, rows)), w.sub(number, w.binary("mul", row, columns))
    halves = [(column, y), (z, w.cast("zext", taken, "i64"))]
    answer = [w.either(low, w.binary("shl", high, integer("i64", 32))) for low, high in halves]
    if "multicast" in inst.op.mods:
        _to_each_rank(x, lambda far: _answer(x, inst, answer, far))
    else:
        _answer(x, inst, answer, integer("i64", 0))


def _answer(x: Lowering, inst: Inst, answer: list[Value], far: Value) -> None:
    """Write an answer, and count its bytes at the mbarrier, ``far`` bytes from where the operands point."""
    w, given = x.w, named_operands(inst)
    access, mem = access_at(x, inst, given["a"], window_of(inst.op.mods.get("space")), 16, store=True)

    def write(lane: str, values: list[str]) -> str:
        address, low, high = values
        host = located(x, access.window, address, 16, lane)
        for at, word in ((host, low), (w.assign(f"add i64 {host}, 8"), high)):
            w.line(f"store i64 {word}, ptr {w.assign(f'inttoptr i64 {at} to ptr')}, align 8")
        return "0"

    each_lane(x, [w.add(full_address(x, access, mem), far), *answer], "i64", write)
    complete_bytes(x, inst, given["mbar"], integer("i64", 16), far)


def _to_each_rank(x: Lowering, body: Callable[[Value], None]) -> None:
    """Emit a loop over the CTAs of the cluster; ``body`` gets what leads from the own shared memory to another's."""
    w = x.w
    size = x.field("launch", "cluster_size", "i32")
    alone = w.assign(f"icmp eq i32 {size}, 1")

    def one(names: list[str]) -> list[str]:
        more = w.assign(f"add i32 {names[0]}, 1")
        wide = w.assign(f"zext i32 {more} to i64")
        far = w.assign(f"select i1 {alone}, i64 0, i64 {w.assign(f'shl i64 {wide}, {RANK_SHIFT}')}")
        body(Value("i64", far, True))
        return [more]

    w.loop([("i32", "0")], lambda names: w.assign(f"icmp ult i32 {names[0]}, {size}"), one)


@lowers("clusterlaunchcontrol", takes=lambda mods: "query_cancel" in mods)
def _query_cancel(x: Lowering, inst: Inst) -> None:
    """What an answer says: whether there is a CTA, or its place."""
    w, mods = x.w, inst.op.mods
    target, source = inst.op.operands
    answer = x.read(source, "i128")

    def word(k: int) -> Value:
        return w.cast("trunc", w.binary("lshr", answer, integer("i128", 32 * k)) if k else answer, "i32")

    if "is_canceled" in mods:
        x.write(target, w.cast("trunc", word(3), "i1"))
    elif "mode" in mods:
        x.write(target, word("xyz".index(mods["mode"][-1])))
    else:
        for k, element in enumerate(x.elements(target)):
            x.write(element, word(k))
