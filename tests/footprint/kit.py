"""Small kernels with their footprints, and what the CPU device sees of the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from teenycli.devices.cpu import CpuDevice
from teenycli.dtypes import DTYPES
from teenycli.errors import TeenyError
from teenycli.footprint import Miss, Survey, Trace, footprint_of
from teenycli.launch.plan import Address, Argument, Buffer, Field, Launch, Plan, Value
from teenycli.ptx import code_of, outline
from teenycli.ptx.flow import Flow
from teenycli.ptx.layout import Slot, layout
from teenycli.ptx.model import Function, Module, Source, Triple
from tests.footprint.witness import Log, memory_of, ran, witnessed

Array = npt.NDArray[Any]
SM = 90
HEAD = f".version 8.7\n.target sm_{SM}\n.address_size 64\n"
REGISTERS = """.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .f32 %f<9>;
.reg .b32 %i, %cta;
"""
#: %i is the thread's number in a grid of one dimension, %d0 four times that.
PRELUDE = """mov.u32 %i,%tid.x; mov.u32 %cta,%ctaid.x; mov.u32 %r0,%ntid.x; mad.lo.u32 %i,%cta,%r0,%i;
mul.wide.u32 %d0,%i,4;
"""


def traced(plan: Plan, module: Module, entry: Function, slots: tuple[Slot, ...], work: int) -> Trace:
    """What the launches of a plan touch."""
    return footprint_of(plan, Survey(module, entry, slots, Flow(code_of(module, entry))), work)


@dataclass(frozen=True)
class Room:
    """A buffer of a kernel: how many elements, of which type, and what it is to the op."""

    count: int
    dtype: str = "u32"
    role: str = "input"


def out(count: int, dtype: str = "u32") -> Room:
    return Room(count, dtype, "output")


#: What is passed: a buffer, a scalar of 32 bits, a null pointer, an address, members of a struct by their offset.
Passed = Room | int | None | Address | Mapping[int, "Room | int | str"]


@dataclass(frozen=True)
class Case:
    """A kernel with a plan."""

    module: Module
    plan: Plan

    @property
    def entry(self) -> Function:
        return next(entry for entry in self.module.entries if entry.name == self.plan.entry)

    @property
    def slots(self) -> tuple[Slot, ...]:
        return layout(self.entry, SM)

    def trace(self, work: int = 10**9) -> Trace:
        return traced(self.plan, self.module, self.entry, self.slots, work)

    def arrays(self, given: Mapping[str, Array] | None = None) -> dict[str, Array]:
        """What the buffers hold: what is given, else noise."""
        rng = np.random.default_rng(0)
        noise = {b.name: rng.integers(0, 256, b.nbytes, dtype=np.uint8) for b in self.plan.buffers}
        return {**noise, **{name: np.ascontiguousarray(array) for name, array in (given or {}).items()}}

    def log(self, given: Mapping[str, Array] | None = None) -> Log:
        """What happens on the CPU device. Raises what that raises."""
        return ran(self.plan, witnessed(self.module, self.entry, len(self.plan.buffers)), self.arrays(given), 20)

    def fault(self, given: Mapping[str, Array] | None = None) -> TeenyError | None:
        """What stops the kernel on the CPU device."""
        arrays = self.arrays(given)
        with CpuDevice(threads=1) as device:
            held = {b.name: device.upload(b.name, memory_of(b, arrays[b.name]), b.align) for b in self.plan.buffers}
            try:
                for launch in self.plan.launches:
                    device.prepare(device.load(self.module, launch.entry), launch, dict(held))(20)
            except TeenyError as error:
                return error
        return None


def case(
    body: str,
    *,
    head: str = "",
    block: Sequence[int] = (32,),
    grid: Sequence[int] = (1,),
    shared: int = 0,
    cluster: Triple = (1, 1, 1),
    launches: Sequence[Mapping[str, Passed]] = (),
    prelude: bool = True,
    **passed: Passed,
) -> Case:
    """A kernel of ``body`` whose parameters are what is passed by name, each in the register of its name: %x.

    A struct has its members at their offsets, and no register. ``launches`` pass other values, a launch each; a buffer
    of one name is one buffer.
    """
    params, loads = [], []
    for name, value in passed.items():
        if isinstance(value, Mapping):
            params.append(f".param .align 8 .b8 {name}[{max(value) + 8}]")
        else:
            bits = 32 if isinstance(value, int) else 64
            params.append(f".param .u{bits} {name}")
            loads.append(f".reg .b{bits} %{name}; ld.param.u{bits} %{name},[{name}];")
    start = PRELUDE if prelude else ""
    opened = f"{HEAD}{head}\n.visible .entry k({', '.join(params)})\n{{\n{REGISTERS}{' '.join(loads)}\n"
    text = f"{opened}{start}{body}\nret;\n}}\n"
    module = outline(Source("k.ptx", text))
    slots = layout(module.entries[-1], SM)
    buffers: dict[str, Buffer] = {}
    made = []
    for index, values in enumerate(launches or [{}]):
        args = tuple(
            _argument(slot, name, value, buffers)
            for slot, (name, value) in zip(slots, {**passed, **values}.items(), strict=True)
        )
        made.append(Launch("op", index, "k", _triple(grid), _triple(block), args, cluster, shared))
    return Case(module, Plan("op", {}, "k.ptx", "k", tuple(buffers.values()), tuple(made)))


def _triple(extents: Sequence[int]) -> Triple:
    x, y, z = (*extents, 1, 1)[:3]
    return x, y, z


def _argument(slot: Slot, name: str, value: Passed, buffers: dict[str, Buffer]) -> Argument:
    if isinstance(value, Mapping):
        fields = tuple(_field(f"{name}{at}", each, at, buffers) for at, each in value.items())
        return Argument(slot.index, name, "struct", slot.size, fields, slot.offset)
    made = _field(name, value, 0, buffers)
    return Argument(slot.index, name, made.kind, slot.size, (made,), slot.offset)


def _field(name: str, value: Room | int | Address | str | None, at: int, buffers: dict[str, Buffer]) -> Field:
    given: Value = Address()
    if isinstance(value, Room):
        buffers.setdefault(name, Buffer(name, DTYPES[value.dtype], (value.count,), value.role))
        given = Address(name)
    elif isinstance(value, str):
        given = Address(value)
    elif value is not None:
        given = value
    kind = "ptr" if isinstance(given, Address) else "u32" if isinstance(given, int) and given >= 0 else "i32"
    return Field(kind, given, at)


# --- what is said ----------------------------------------------------------------------------------------------------


def read(trace: Trace, name: str = "x") -> set[int]:
    return _indices(trace.buffers[name].read)


def written(trace: Trace, name: str = "y") -> set[int]:
    return _indices(trace.buffers[name].written)


def contested(trace: Trace, name: str = "y") -> set[int]:
    return _indices(trace.buffers[name].contested)


def _indices(held: Array | None) -> set[int]:
    assert held is not None
    return set(np.flatnonzero(held).tolist())


def blurred(trace: Trace) -> tuple[set[str], set[str]]:
    """The buffers that may be read, and written, at places that are not known."""
    each = trace.buffers.values()
    return {t.buffer.name for t in each if t.read_anywhere}, {t.buffer.name for t in each if t.written_anywhere}


def misses(trace: Trace) -> list[Miss]:
    return list(trace.misses.values())


def sound(case: Case, *contents: Mapping[str, Array], exact: bool = False) -> Trace:
    """The footprint, once it has been held against runs with each of ``contents``: what happens is covered, what is
    said to miss faults, and where all is known nothing else does. If ``exact``, what is covered happens."""
    trace = case.trace()
    for given in contents or ({},):
        error = case.fault(given)
        assert error is not None or not trace.misses, trace.misses
        if error is not None:
            assert trace.misses or any(blurred(trace)), error
            continue
        log = case.log(given)
        for name, touched in trace.buffers.items():
            _covers(f"{name} read", read(trace, name), touched.read_anywhere, log.read[name], exact)
            _covers(f"{name} written", written(trace, name), touched.written_anywhere, log.written[name], exact)
    return trace


def _covers(what: str, said: set[int], anywhere: bool, happened: Array, exact: bool) -> None:
    seen = _indices(happened)
    assert anywhere or seen <= said, f"{what}: {seen - said} too"
    assert not exact or (seen == said and not anywhere), f"{what}: never {said - seen}"
