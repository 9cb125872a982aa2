"""What memory the launches of a plan touch, from the PTX alone: the part of a kernel that makes addresses, run for its
threads in numpy, without data.

:func:`footprint_of` is all that the rooms above need. What hangs on data is left open, never guessed: a footprint says
what surely happens, and where something else might.

May import ``launch``, ``ptx`` and, it alone beside ``tensors`` below the devices, numpy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial
from types import MappingProxyType

import numpy as np

from teenycli.footprint.arena import Arena, arena_of
from teenycli.footprint.bounds import comparisons
from teenycli.footprint.lanes import Array
from teenycli.footprint.slices import Slice
from teenycli.footprint.threads import Threads
from teenycli.footprint.trace import Miss, Touched, Trace
from teenycli.footprint.walk import Budget, Guide, SpentError, Walk
from teenycli.launch.plan import Launch, Plan, encode_argument
from teenycli.ptx import code_of
from teenycli.ptx.code import Code, Mem, Op, Reg
from teenycli.ptx.flow import Flow
from teenycli.ptx.graph import HELD, PART, numbers
from teenycli.ptx.layout import Slot, layout_size
from teenycli.ptx.model import Function, Module
from teenycli.ptx.search import reached, shared_static

#: All parameters that there may be.
UNKNOWN = -1
#: Lanes that are walked at once.
_LANES = 1 << 15


def footprint_of(plan: Plan, survey: Survey, work: int, contents: Mapping[str, Array] = MappingProxyType({})) -> Trace:
    """What the plan's launches touch, as far as ``work`` operations reach; ``complete`` says whether that is all.
    ``survey`` is that of the plan's entry. ``contents`` are the bytes of buffers that are known and never change, such
    as indices: what is loaded from these is known as well."""
    _keep_freed()
    trace = Trace(plan, contents=contents)
    budget = Budget(work)
    with np.errstate(all="ignore"):
        for launch in _ends_first(plan.launches):
            trace.begin(launch)
            try:
                survey.walk(trace, launch, budget)
            except SpentError:
                trace.complete = False
                break
            finally:
                trace.spent = work - budget.left
    return trace


@cache
def _keep_freed() -> None:
    """Have what arrays leave be used again. glibc gives the end of its heap back to the system, and numpy's next array
    takes it anew, page by page, unless something larger was freed before (mallopt(3), M_MMAP_THRESHOLD)."""
    np.empty(1 << 24, np.uint8)


def _ends_first(launches: tuple[Launch, ...]) -> list[Launch]:
    """The last launch is the likeliest to reach too far."""
    return [*launches[:1], *launches[:0:-1]]


class Survey:
    """The slices of an entry and of what it calls, made once for all plans; ``slots`` are the entry's parameters,
    ``flow`` the ways of values through it. Raises what parsing the bodies raises."""

    def __init__(self, module: Module, entry: Function, slots: tuple[Slot, ...], flow: Flow) -> None:
        self.module, self.entry, self.slots, self.flow = module, entry, slots, flow
        self.static_shared = shared_static(module, entry)
        self.codes = {function.name: code_of(module, function) for function in reached(module, entry)}
        self.slices: dict[str, Slice] = {}
        self.comparisons = comparisons(flow)

    def slice_of(self, function: Function) -> Slice | None:
        name = self.module.aliases.get(function.name, function.name)
        if name not in self.codes:
            return None
        if name not in self.slices:
            self.slices[name] = Slice(self.codes[name])
        return self.slices[name]

    def walk(self, trace: Trace, launch: Launch, budget: Budget) -> None:
        """All CTAs of a launch, those at the corners of the grid first. Raises SpentError."""
        if not launch.ctas or not launch.threads:
            return
        entry = self.slice_of(self.entry)
        assert entry is not None
        arena = arena_of(trace.plan, self.module, list(self.codes.values()), self.static_shared, launch.shared)
        params = self._params(launch, arena)
        offsets = {id(slot.param): slot.offset for slot in self.slots}

        guide = Guide(self.slice_of, self._origins, partial(_buffers_of, trace, launch), self.comparisons)
        for ctas in _chunks(launch):
            Walk(trace, Threads(launch, ctas, arena, params, offsets), guide, budget).run(entry)

    def _params(self, launch: Launch, arena: Arena) -> bytes:
        raw = bytearray(layout_size(self.slots))
        for argument in launch.args:
            if argument.offset is not None:
                data = encode_argument(argument, arena.address_of)
                raw[argument.offset : argument.offset + len(data)] = data
        return bytes(raw)

    def _origins(self, code: Code, op: Op) -> int:
        """The parameters (bits) that the addresses of an instruction are made of, or ``UNKNOWN``."""
        if code.function is not self.entry:
            return UNKNOWN
        graph, nodes = self.flow.graph, self.flow.frames[0].nodes
        bits = 0
        for mem in (operand for operand in op.operands if isinstance(operand, Mem)):
            if isinstance(mem.base, Reg):
                held = numbers(graph.state[nodes[mem.base.register]], HELD | PART)
                params = [graph.tokens[number].param for number in held]
                if -1 in params:
                    return UNKNOWN  # an address that comes out of memory
                bits |= sum(1 << param for param in set(params))
        return bits or UNKNOWN


def _buffers_of(trace: Trace, launch: Launch, origins: int) -> list[str]:
    """The buffers that addresses made of these parameters may lie in."""
    if origins == UNKNOWN:
        return list(trace.buffers)
    return [name for argument in launch.args if origins >> argument.index & 1 for name in argument.buffers]


def _chunks(launch: Launch) -> Iterator[Array]:
    """The CTAs of a launch by number, so many at a time as make up the lanes of a walk: first, last, and the rest."""
    at_once = max(_LANES // launch.threads, 1)
    if launch.ctas <= at_once:
        yield np.arange(launch.ctas)
        return
    x, y, z = launch.grid
    corners = sorted({i + x * (j + y * k) for i in (0, x - 1) for j in (0, y - 1) for k in (0, z - 1)})
    for start in range(0, len(corners), at_once):
        yield np.array(corners[start : start + at_once])
    for start in range(0, launch.ctas, at_once):
        yield np.arange(start, min(start + at_once, launch.ctas))


__all__ = ["Miss", "Survey", "Touched", "Trace", "footprint_of"]
