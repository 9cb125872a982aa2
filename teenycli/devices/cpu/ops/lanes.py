"""Work done for one acting lane after the other: what has an order, or a state that lanes share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from teenycli.devices.cpu import native
from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.value import Value


def each_lane(x: Lowering, values: Sequence[Value], result: str, body: Callable[[str, list[str]], str]) -> Value:
    """Emit a loop over acting lanes. ``body`` gets a lane's number (an i32) and its values, and gives its result of
    the LLVM type ``result``; it may leave the warp. Lanes that do not act have zero."""
    w = x.w
    lanes = w.vector(result)
    given = [(w.vector(v.type), w.lanes(v)) for v in values]
    bits = x.bits_of(x.exec)
    head, one, out = w.fresh_label("lanes"), w.fresh_label("lane"), w.fresh_label("served")
    before, left, fewer, sofar, more = w.current, w.name(), w.name(), w.name(), w.name()
    start = len(w.lines)
    w.jump(head)
    w.label(one)
    lane = native.first_lane(w, left)
    scalars = [w.assign(f"extractelement {kind} {text}, i32 {lane}") for kind, text in given]
    answer = body(lane, scalars)
    w.line(f"{more} = insertelement {lanes} {sofar}, {result} {answer}, i32 {lane}")
    minus = w.assign(f"sub i{w.width} {left}, 1")
    w.line(f"{fewer} = and i{w.width} {left}, {minus}")
    last = w.current
    w.jump(head)
    loop, w.lines[start + 1 :] = w.lines[start + 1 :], []
    w.label(head)
    w.line(f"{left} = phi i{w.width} [ {bits}, %{before} ], [ {fewer}, %{last} ]")
    w.line(f"{sofar} = phi {lanes} [ zeroinitializer, %{before} ], [ {more}, %{last} ]")
    w.branch(w.assign(f"icmp eq i{w.width} {left}, 0"), out, one)
    w.lines += loop
    w.label(out)
    return Value(result, sofar, False)
