"""A plan on a device: buffers up, launches in order, buffers down. The same for every device.

May import ``arch``, ``errors``, ``exits``, ``launch.plan``, ``ptx.model``, ``devices.base``, ``devices.releases``, and
numpy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from teenycli.arch import Limits
from teenycli.devices.base import Device, DeviceBuffer, Kernel, Run
from teenycli.devices.releases import Releases
from teenycli.errors import Finding, TeenyError
from teenycli.exits import Exit
from teenycli.launch.plan import Buffer, Launch, Plan
from teenycli.ptx.model import Module

Array = npt.NDArray[Any]


class Execution(Struct, frozen=True):
    """What came of a plan.

    ``device`` is its name, ``description`` the hardware. ``compile_ms`` sums over the entries, and ``cached`` says
    whether all came from a cache. ``launch_ms`` has a time for each launch of the plan, in its order. ``arrays`` are
    the buffers that came back, by name, each of the dtype and shape it went up with. ``findings`` are what the device
    had to say about the kernels.
    """

    device: str
    description: str
    compile_ms: float
    cached: bool
    launch_ms: tuple[float, ...]
    arrays: Mapping[str, Array]
    findings: tuple[Finding, ...] = field(default=())


class Lease(Struct):
    """Buffers that are on the device for longer than one plan.

    ``taken`` are there already, by the plan's names, and are neither uploaded nor freed. Those named in ``keep`` are
    not freed either once all launches have run: they are then in ``kept``, for the caller to free.
    """

    taken: Mapping[str, DeviceBuffer] = field(default_factory=dict)
    keep: frozenset[str] = frozenset()
    kept: dict[str, DeviceBuffer] = field(default_factory=dict)


def execute(
    plan: Plan,
    module: Module,
    device: Device,
    arrays: Mapping[str, Array],
    *,
    timeout: float = 0.0,
    everything: bool = False,
    kernels: Mapping[str, Kernel] | None = None,
    lease: Lease | None = None,
    variables: Mapping[str, npt.NDArray[np.uint8]] = MappingProxyType({}),
) -> Execution:
    """Run every launch of ``plan`` on ``device``, which stays open.

    ``arrays`` holds the first content of every buffer of the plan, by name, as many elements as the buffer has. Rows
    that lie apart in memory are laid out here, and come back tight.
    ``timeout`` is for each launch, in seconds, 0 for none. What comes back are the outputs, or all buffers but scratch
    when ``everything`` is wanted. ``kernels`` are those of ``load_kernels``, for a plan that is run again and again.
    The module's variables are as its text says, but for ``variables``, the bytes of those that are set before, by name.
    Buffers are let go of however it ends, but for those of a ``lease``.

    Raises TeenyError: ``launch-limits``, ``buffer-size``, and whatever the device raises.
    """
    for launch in plan.launches:
        check_limits(launch, device.limits)
    lease = Lease() if lease is None else lease
    contents = {b.name: _bytes_of(b, arrays) for b in plan.buffers if b.name not in lease.taken}
    kernels = load_kernels(plan, module, device) if kernels is None else kernels
    device.reset_variables(module)
    for kernel in kernels.values():
        for name, data in variables.items():
            device.set_variable(kernel, name, data)
    with Releases() as held:
        buffers: dict[str, DeviceBuffer] = dict(lease.taken)
        for buffer in plan.buffers:
            if buffer.name not in lease.taken:
                # Another op may meet it: faults then say whose it is.
                label = f"{plan.op}.{buffer.name}" if buffer.name in lease.keep else buffer.name
                uploaded = device.upload(label, contents.pop(buffer.name), buffer.align)
                buffers[buffer.name] = uploaded
                held.later(_let_go, device, lease, buffer.name, uploaded)
        # All are made ready before the first one runs: one that cannot be made is told before anything has happened.
        ready: list[tuple[Launch, Run]] = []
        for launch in plan.launches:
            with _naming(plan, launch):
                ready.append((launch, device.prepare(kernels[launch.entry], launch, buffers)))
        times: list[float] = []
        for launch, run in ready:
            with _naming(plan, launch):
                times.append(run(timeout).ms)
        wanted = [b for b in plan.buffers if b.is_output or (everything and b.role != "scratch")]
        results = {b.name: _like(b, arrays[b.name], device.download(buffers[b.name])) for b in wanted}
        lease.kept = {name: buffers[name] for name in lease.keep}
    return Execution(
        device.name,
        device.description,
        sum(kernel.compile_ms for kernel in kernels.values()),
        bool(kernels) and all(kernel.cached for kernel in kernels.values()),
        tuple(times),
        results,
        tuple(finding for kernel in kernels.values() for finding in kernel.findings),
    )


def _let_go(device: Device, lease: Lease, name: str, buffer: DeviceBuffer) -> None:
    if name not in lease.kept:
        device.free(buffer)


@contextmanager
def _naming(plan: Plan, launch: Launch) -> Iterator[None]:
    """What goes wrong in one launch of several says in which."""
    try:
        yield
    except TeenyError as error:
        which, said = f"launch {launch.index}", error.finding.message
        if len(plan.launches) > 1 and which not in said:
            error.finding = error.finding.but(message=f"{which} of {len(plan.launches)}: {said}")
        raise


def load_kernels(plan: Plan, module: Module, device: Device) -> dict[str, Kernel]:
    """Every entry that the plan launches, each loaded once. Raises what the device raises."""
    kernels: dict[str, Kernel] = {}
    for launch in plan.launches:
        if launch.entry not in kernels:
            kernels[launch.entry] = device.load(module, launch.entry)
    return kernels


def check_limits(launch: Launch, limits: Limits) -> None:
    """What no device launches, whatever checks were skipped. Raises TeenyError ``launch-limits`` (exit FAILED)."""
    sizes = [("grid", launch.grid, limits.grid), ("block", launch.block, limits.block)]
    wrong = [
        f"{what} {dims} (at most {most}, at least 1 each)"
        for what, dims, most in sizes
        if any(not 1 <= dim <= top for dim, top in zip(dims, most, strict=True))
    ]
    if not wrong and launch.threads > limits.threads_per_block:
        wrong.append(f"a block of {launch.threads:,} threads (at most {limits.threads_per_block:,})")
    if not 0 <= launch.shared <= limits.shared_optin:
        wrong.append(f"{launch.shared:,} bytes of dynamic shared memory (at most {limits.shared_optin:,})")
    if wrong:
        raise TeenyError("launch-limits", f"no launch of this size can be made: {'; '.join(wrong)}", exit=Exit.FAILED)


def _bytes_of(buffer: Buffer, arrays: Mapping[str, Array]) -> npt.NDArray[np.uint8]:
    """The bytes of a buffer's memory: of its array, with zeros between rows that lie apart."""
    array = arrays.get(buffer.name)
    if array is None or array.nbytes != buffer.size * buffer.dtype.size:
        have = "nothing" if array is None else f"{array.nbytes:,} bytes"
        takes = buffer.size * buffer.dtype.size
        raise TeenyError("buffer-size", f"buffer '{buffer.name}' has {takes:,} bytes and was given {have}")
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if not buffer.is_padded:
        return raw
    count, elems, stride = buffer.rows
    memory = np.zeros((count, stride * buffer.dtype.size), np.uint8)
    memory[:, : elems * buffer.dtype.size] = raw.reshape(count, -1)
    return memory.reshape(-1)


def _like(buffer: Buffer, array: Array, raw: npt.NDArray[np.uint8]) -> Array:
    """The memory of a buffer as ``array`` is: what lies between rows is left out."""
    if buffer.is_padded:
        count, elems, _ = buffer.rows
        raw = np.ascontiguousarray(raw.reshape(count, -1)[:, : elems * buffer.dtype.size]).reshape(-1)
    return raw.view(array.dtype).reshape(array.shape)
