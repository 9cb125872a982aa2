"""Who runs a case: the CPU device, numpy, PoCL, and the machine itself as the bound of all three.

Each takes a case and a number of threads, and gives a function to be timed; its results are checked first.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from benchmarks.cases import Array, Case
from benchmarks.machine import copying, multiplying
from benchmarks.timing import ROOT
from teenycli.devices.cpu import CpuDevice
from teenycli.devices.cpu.kernel import lower, prepare
from teenycli.launch.plan import Address, Argument, Field, Launch
from teenycli.ptx import outline, read_source
from teenycli.ptx.layout import Slot, layout


class Prepared(NamedTuple):
    """A function to be timed, and what its side knows of it."""

    run: Callable[[], object]
    facts: Mapping[str, float] = MappingProxyType({})


class SideMissingError(Exception):
    """A side cannot run here, and why."""


def argument(slot: Slot, value: Array | float | None) -> Argument:
    """What a kernel is given in a slot: a buffer of the slot's name, a number, or, for None, a null pointer."""
    name = f"arg{slot.index}"
    if isinstance(value, int | float):
        field = Field("i32" if isinstance(value, int) else "f32", value)
    else:
        field = Field("ptr", Address(None if value is None else name))
    return Argument(slot.index, name, field.kind, slot.size, (field,), slot.offset)


class Loaded:
    """A case on a CPU device: parsed, compiled or taken from the cache, its arguments in place."""

    def __init__(self, case: Case, device: CpuDevice) -> None:
        self.case, self.device = case, device
        self.module = outline(read_source(ROOT / case.ptx))
        self.function = next(f for f in self.module.entries if f.name == case.entry)
        self.kernel = device.load(self.module, case.entry)
        slots = layout(self.function, device.layout_sm(self.module))
        values = [*case.args, *[None] * (len(slots) - len(case.args))]  # Triton adds two pointers of its own
        self.buffers = {
            f"arg{slot.index}": device.upload(f"arg{slot.index}", value.reshape(-1).view(np.uint8))
            for slot, value in zip(slots, values, strict=True)
            if isinstance(value, np.ndarray)
        }
        arguments = tuple(map(argument, slots, values))
        self.plan = Launch(case.entry, 0, case.entry, case.grid, case.block, arguments, (1, 1, 1), case.shared)

    def run(self) -> None:
        """Launch once."""
        self.device.prepare(self.kernel, self.plan, self.buffers)(0)

    def checked(self) -> Array:
        """What the kernel wrote, after one launch. Raises AssertionError when it is wrong."""
        like = self.case.result
        found = self.device.download(self.buffers[f"arg{self.case.output}"]).view(like.dtype).reshape(like.shape)
        self.case.check(found, "the CPU device")
        return found


def teeny(case: Case, threads: int) -> Prepared:
    """A launch on the CPU device. Facts: what the case costs, milliseconds to compile and to reload, size of the IR."""
    device = CpuDevice(threads=threads)
    loaded = Loaded(case, device)
    without = CpuDevice(cache=False)
    compiled = [without.load(loaded.module, case.entry).compile_ms for _ in range(3)]
    reloads = [device.load(loaded.module, case.entry).compile_ms for _ in range(5)]
    loaded.run()
    facts = {
        "bytes": case.bytes,
        "operations": case.operations(loaded.checked()),
        "compile_ms": statistics.median(compiled),
        "reload_ms": statistics.median(reloads),
        "ir_lines": lower(prepare(loaded.module, loaded.function, device.layout_sm(loaded.module))).text.count("\n"),
    }
    return Prepared(loaded.run, facts)


def numpy(case: Case, _threads: int) -> Prepared:
    """numpy; its BLAS takes its threads from the environment."""
    return Prepared(case.numpy)


@lru_cache(maxsize=1)
def _opencl() -> tuple[Any, Any, Any]:
    """pyopencl, a queue on PoCL, and the program. Raises SideMissingError."""
    try:
        import pyopencl as cl
    except ImportError:
        raise SideMissingError("pyopencl is not installed") from None
    try:
        platform = next(p for p in cl.get_platforms() if "Portable Computing" in p.name)
    except (cl.LogicError, StopIteration):
        raise SideMissingError("OpenCL finds no PoCL") from None
    context = cl.Context(platform.get_devices())
    program = cl.Program(context, (ROOT / "benchmarks" / "kernels" / "kernels.cl").read_text()).build()
    return cl, cl.CommandQueue(context), program


def pocl(case: Case, _threads: int) -> Prepared:
    """The same algorithm in OpenCL C on PoCL, which takes its threads from the environment."""
    cl, queue, program = _opencl()
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    args = []
    for value in case.args:
        if isinstance(value, np.ndarray):
            args.append(cl.Buffer(queue.context, flags, hostbuf=value))
        else:
            args.append(np.int32(value) if isinstance(value, int) else np.float32(value))
    kernel = cl.Kernel(program, case.entry)
    sizes = [g * b for g, b in zip(case.grid, case.block, strict=True)]

    def run() -> None:
        kernel(queue, sizes, case.block, *args)
        queue.finish()

    run()
    found = np.empty_like(case.result)
    cl.enqueue_copy(queue, found, args[case.output])
    case.check(found, "PoCL")
    return Prepared(run)


def copy(_case: Case, threads: int) -> Prepared:
    """A copy of memory, whatever the case."""
    run, amount = copying(threads)
    return Prepared(run, {"bytes": amount})


def fma(_case: Case, threads: int) -> Prepared:
    """FMAs in registers, whatever the case."""
    run, amount = multiplying(threads)
    return Prepared(run, {"operations": amount})


SIDES: dict[str, Callable[[Case, int], Prepared]] = {
    "teeny": teeny,
    "numpy": numpy,
    "pocl": pocl,
    "copy": copy,
    "fma": fma,
}
