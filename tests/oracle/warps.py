"""Warp-wide operations and barrier reductions: from what each thread brings to what each takes away (PTX ISA 9.7.13).

Threads are given by lane, in a dict, with the sources of their instruction; all of them carry out the same one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from tests.oracle.floating import MEANINGS_OF_EXTREMES
from tests.oracle.floats import FORMATS, decode
from tests.oracle.meaning import Bits, Mods, number

Sources = Mapping[int, tuple[Any, ...]]


def result(opcode: str, m: Mods, given: Sources) -> dict[int, Any]:
    """What each lane receives."""
    return {"shfl": _shfl, "vote": _vote, "match": _match, "redux": _redux, "activemask": _activemask}[opcode](m, given)


def _bits(lanes: Any) -> int:
    return sum(1 << lane for lane in lanes)


def _activemask(_: Mods, given: Sources) -> dict[int, Any]:
    return dict.fromkeys(given, _bits(given))


def _shfl(m: Mods, given: Sources) -> dict[int, Any]:
    """The value, and whether the source lane lay in range; the value of a lane that is not there is open."""
    found = {}
    for lane, (_, b, c, *_mask) in given.items():
        delta, clamp, segments = b & 31, c & 31, c >> 8 & 31
        low = lane & segments
        high = low | clamp & ~segments
        source = {"up": lane - delta, "down": lane + delta, "bfly": lane ^ delta,
                  "idx": low | delta & ~segments}[m["mode"]]  # fmt: skip
        inside = source >= high if m["mode"] == "up" else source <= high
        if not inside:
            source = lane
        found[lane] = (given[source][0] if source in given else None, int(inside))
    return found


def _vote(m: Mods, given: Sources) -> dict[int, Any]:
    votes = {lane: values[0] for lane, values in given.items()}
    for_it = _bits(lane for lane, vote in votes.items() if vote)
    answer = {"all": int(all(votes.values())), "any": int(any(votes.values())),
              "uni": int(len(set(votes.values())) == 1), "ballot": for_it}[m["op"]]  # fmt: skip
    return dict.fromkeys(given, answer)


def _match(m: Mods, given: Sources) -> dict[int, Any]:
    values = {lane: sources[0] for lane, sources in given.items()}
    if m["op"] == "any":
        return {lane: _bits(k for k, v in values.items() if v == value) for lane, value in values.items()}
    same = len(set(values.values())) == 1
    return dict.fromkeys(given, (_bits(given) if same else 0, int(same)))


def _redux(m: Mods, given: Sources) -> dict[int, Any]:
    values = [sources[0] for sources in given.values()]
    if m["type"] == "f32":
        return dict.fromkeys(given, _redux_float(m, values))
    value = number(m["type"])
    functions: dict[str, Callable[[int, int], int]] = {
        "add": operator.add, "min": min, "max": max, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    }  # fmt: skip
    return dict.fromkeys(given, reduce(functions[m["op"]], map(value, values)) & 0xFFFFFFFF)


def _redux_float(m: Mods, values: list[int]) -> Bits:
    """``min`` and ``max`` of all, as the instruction of that name has it for two; alone, a NaN is canonical."""
    values = [v & 0x7FFFFFFF for v in values] if "abs" in m else values
    pick = MEANINGS_OF_EXTREMES[m["op"]]({"type": "f32"} | ({"nan": "NaN"} if "nan" in m else {}))
    found = reduce(pick, values)
    return FORMATS["f32"].nan if decode(FORMATS["f32"], found).is_nan else found


def barrier_reduction(m: Mods, votes: list[int]) -> int:
    return {"popc": sum(votes), "and": int(all(votes)), "or": int(any(votes))}[m["op"]]
