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
    kind = f"i{w.width}"

    def some_left(names: list[str]) -> str:
        return w.assign(f"icmp ne {kind} {names[0]}, 0")

    def one(names: list[str]) -> list[str]:
        left, sofar = names
        lane = native.first_lane(w, left)
        scalars = [w.assign(f"extractelement {type} {text}, i32 {lane}") for type, text in given]
        answer = body(lane, scalars)
        more = w.assign(f"insertelement {lanes} {sofar}, {result} {answer}, i32 {lane}")
        return [w.assign(f"and {kind} {left}, {w.assign(f'sub {kind} {left}, 1')}"), more]

    _, served = w.loop([(kind, x.bits_of(x.exec)), (lanes, "zeroinitializer")], some_left, one)
    return Value(result, served, False)
