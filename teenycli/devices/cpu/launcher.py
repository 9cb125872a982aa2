"""One launch: parameters, windows and tables put in place, the pool set to work, its end judged.

May import ``faults``, ``kernel``, ``layout``, ``memory``, ``pool``, ``launch.plan``. Imports numpy.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from teenycli.devices.cpu.faults import Region, Scene, fault_error, window_regions
from teenycli.devices.cpu.kernel import Image
from teenycli.devices.cpu.layout import PARAM_ID, SHARED_ID, Context, FaultKind, Launch
from teenycli.devices.cpu.memory import AddressSpace, Bytes, aligned_bytes
from teenycli.devices.cpu.pool import Pool
from teenycli.errors import Finding, TeenyError
from teenycli.exits import Exit
from teenycli.launch import plan
from teenycli.ptx.model import Module, Triple

#: CTAs are handed out in so many chunks a thread.
CHUNKS = 8

_RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


@dataclass(eq=False, slots=True)
class CpuKernel:
    """An entry made ready to launch. ``variables`` hold the module's own memory, by id, between launches."""

    module: Module
    entry: str
    image: Image
    address: int
    keep: Any
    compile_ms: float
    cached: bool
    variables: dict[int, tuple[Region, Bytes]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


@lru_cache(maxsize=16)
def thread_tables(block: Triple) -> tuple[npt.NDArray[np.int32], ...]:
    """Thread indices x, y, z by thread number, with room for a whole warp after the last."""
    x, y, z = block
    number = np.arange(x * y * z + 32, dtype=np.int32)
    return number % x, number // x % y, number // (x * y)


class Runner:
    """Launches kernels on a pool of ``threads``."""

    def __init__(self, space: AddressSpace, threads: int) -> None:
        self.space = space
        self.pool = Pool(threads)

    def launch(self, kernel: CpuKernel, launch: plan.Launch, address_of: Callable[[str], int], timeout: float) -> float:
        """Run one launch; its time in milliseconds. Raises TeenyError for a fault or a time-out (exit FAILED)."""
        image = kernel.image
        if launch.cluster != (1, 1, 1):
            raise TeenyError(
                "unsupported-cluster",
                f"the CPU device runs clusters of one CTA, not of {launch.cluster}",
                hint="an NVIDIA GPU can: --device cuda",
                exit=Exit.UNSUPPORTED,
            )
        threads = launch.threads
        total_shared = image.dynamic_offset + launch.shared if launch.shared else image.shared_static
        params = _parameters(image, launch, address_of)
        tables = thread_tables(launch.block)
        record = Launch(
            next=0, total=launch.ctas, chunk=1, grid=launch.grid, block=launch.block, threads=threads,
            warps=-(-threads // image.width), dynamic_shared=launch.shared, total_shared=total_shared,
            tids=tuple(t.ctypes.data for t in tables),
        )  # fmt: skip
        workers = max(min(self.pool.size, launch.ctas), 1)
        record.chunk = max(1, launch.ctas // (workers * CHUNKS))
        rooms = [_Room(kernel, record, total_shared, params, self.space) for _ in range(workers)]
        function = _RUN(kernel.address)
        pointer = ctypes.addressof(record)
        jobs = [_job(function, pointer, ctypes.addressof(room.context)) for room in rooms]
        start = time.perf_counter()

        def stop() -> None:
            record.stop = 1

        in_time = self.pool.run(jobs, timeout, stop)
        elapsed = (time.perf_counter() - start) * 1e3
        if record.claimed or not in_time:
            self._fail(kernel, launch, record, total_shared, timeout)
        return elapsed

    def _fail(self, kernel: CpuKernel, launch: plan.Launch, record: Launch, total_shared: int, timeout: float) -> None:
        image = kernel.image
        regions = window_regions(total_shared, image.local_size, image.param_bytes)
        regions |= {number: region for number, (region, _) in kernel.variables.items()}
        source = kernel.module.source
        scene = Scene(
            kernel.entry, source.name, source.text.splitlines(), launch.block, image.sites, regions, self.space
        )
        if record.claimed and not (record.fault_kind == FaultKind.NONE):
            raise fault_error(record, scene)
        raise TeenyError(
            "timeout",
            f"kernel '{kernel.entry}' did not end within {timeout:g} s",
            hint="--timeout SECONDS gives it longer; 0 is no limit",
            exit=Exit.FAILED,
        )


def _job(function: Callable[[int, int], None], launch: int, context: int) -> Callable[[], None]:
    def run() -> None:
        function(launch, context)

    return run


def _parameters(image: Image, launch: plan.Launch, address_of: Callable[[str], int]) -> Bytes:
    """The parameter buffer."""
    params = aligned_bytes(max(image.param_bytes, 64))
    for argument in launch.args:
        if argument.offset is not None:
            raw = plan.encode_argument(argument, address_of)
            params[argument.offset : argument.offset + len(raw)] = np.frombuffer(raw, np.uint8)
    return params


class _Room:
    """What one thread of the pool needs: a resident CTA's context and memory."""

    def __init__(self, kernel: CpuKernel, record: Launch, shared: int, params: Bytes, space: AddressSpace) -> None:
        image = kernel.image
        self.shared = aligned_bytes(max(shared, 64))
        self.local = aligned_bytes(image.local_size * (record.threads + 64))
        self.frames = aligned_bytes(max(image.frame_size * record.warps, 64))
        self.table = space.table()
        self.table[SHARED_ID] = (self.shared.ctypes.data, shared, shared, 0)
        self.table[PARAM_ID] = (params.ctypes.data, image.param_bytes, 0, 0)
        for number, (region, data) in kernel.variables.items():
            self.table[number] = (data.ctypes.data, region.size, region.size if region.writable else 0, 0)
        self.params = params
        self.context = Context(
            table=self.table.ctypes.data, entries=len(self.table), params=params.ctypes.data,
            shared=self.shared.ctypes.data, shared_size=shared, local=self.local.ctypes.data,
            local_size=image.local_size, frames=self.frames.ctypes.data, launch=ctypes.addressof(record),
        )  # fmt: skip
