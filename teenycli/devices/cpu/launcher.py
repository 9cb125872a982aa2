"""One launch: parameters, windows and tables put in place, the pool set to work, its end judged.

May import ``faults``, ``hall``, ``layout``, ``memory``, ``pool``, ``services``,
``launch.plan``. Imports numpy.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from teenycli.devices.cpu.faults import Scene, fault_error, window_regions
from teenycli.devices.cpu.hall import COOPERATIVE_BYTES, CpuKernel, Hall
from teenycli.devices.cpu.kernel import Image
from teenycli.devices.cpu.layout import FaultKind, Launch
from teenycli.devices.cpu.memory import AddressSpace, Bytes, CpuBuffer, aligned_bytes
from teenycli.devices.cpu.pool import Pool
from teenycli.devices.cpu.services import Heap, Services
from teenycli.devices.cpu.tensormaps import encoded
from teenycli.errors import TeenyError
from teenycli.exits import Exit
from teenycli.launch import plan
from teenycli.ptx.model import Triple

#: CTAs are handed out in so many chunks a thread.
CHUNKS = 8

#: Passes over the warps of a CTA that may wait for another, after which another may run.
PATIENCE = 64


@lru_cache(maxsize=16)
def thread_tables(block: Triple) -> tuple[npt.NDArray[np.int32], ...]:
    """Thread indices x, y, z by thread number, with room for a whole warp after the last."""
    x, y, z = block
    number = np.arange(x * y * z + 32, dtype=np.int32)
    return number % x, number // x % y, number // (x * y)


class Runner:
    """Launches kernels on a pool of ``threads``."""

    def __init__(self, space: AddressSpace, threads: int, output: Callable[[str], object]) -> None:
        self.space = space
        self.pool = Pool(threads)
        self.heap = Heap(space)
        self.output = output
        self.workspace: CpuBuffer | None = None

    def launch(self, kernel: CpuKernel, launch: plan.Launch, params: Bytes, timeout: float) -> float:
        """Run one launch with these ``parameters``; its time in milliseconds.

        Raises TeenyError for a fault or a time-out (exit FAILED).
        """
        image = kernel.image
        threads = launch.threads
        total_shared = image.dynamic_offset + launch.shared if launch.shared else image.shared_static
        tables = thread_tables(launch.block)
        record = Launch(
            next=0, total=launch.ctas, chunk=1, grid=launch.grid, block=launch.block, threads=threads,
            warps=-(-threads // image.width), dynamic_shared=launch.shared, total_shared=total_shared,
            tids=tuple(t.ctypes.data for t in tables), cluster=launch.cluster, cluster_size=prod(launch.cluster),
            patience=PATIENCE if image.spins else 0,
        )  # fmt: skip
        workers = max(min(self.pool.size, launch.ctas // record.cluster_size), 1)
        if not image.spins:
            record.chunk = max(1, launch.ctas // (workers * CHUNKS))
        if launch.cooperative:
            self._give_workspace(record)
        services = Services(self.heap, self.output)
        record.service = ctypes.cast(services.callback, ctypes.c_void_p).value or 0
        hall = Hall(kernel, record, total_shared, params, self.space, services, is_cooperative=launch.cooperative)
        if launch.cooperative:
            _check_room(launch, hall.room().size)
        clustered = image.suspends and record.cluster_size > 1
        jobs: list[Callable[[], None]] = [hall.run_clusters if clustered else hall.run_ctas] * workers
        start = time.perf_counter()

        def stop() -> None:
            record.stop = 1

        try:
            in_time = self.pool.run(jobs, timeout, stop)
        finally:
            services.close()
        elapsed = (time.perf_counter() - start) * 1e3
        if services.failure is not None:
            raise services.failure
        if record.claimed or not in_time:
            self._fail(kernel, launch, hall, timeout)
        return elapsed

    def _give_workspace(self, record: Launch) -> None:
        """Memory for the grid's own barrier, as CUDA's runtime gives it to a cooperative launch."""
        if self.workspace is None:
            self.workspace = self.space.allocate("the grid's barrier", np.zeros(64, np.uint8), 256)
        assert self.workspace.data is not None
        self.workspace.data[:] = 0
        record.workspace_low = self.workspace.address & 0xFFFFFFFF
        record.workspace_high = self.workspace.address >> 32

    def _fail(self, kernel: CpuKernel, launch: plan.Launch, hall: Hall, timeout: float) -> None:
        record = hall.record
        image = kernel.image
        regions = window_regions(hall.shared, image.local_size, image.param_bytes)
        regions |= {number: region for number, (region, _) in kernel.variables.items()}
        source = kernel.module.source
        scene = Scene(
            kernel.entry, source.name, source.text.splitlines(), launch.block, image.sites, regions, self.space,
            hall.services.assertions, hall.waits,
        )  # fmt: skip
        if record.claimed and not (record.fault_kind == FaultKind.NONE):
            raise fault_error(record, scene)
        raise TeenyError(
            "timeout",
            f"kernel '{kernel.entry}' did not end within {timeout:g} s",
            hint="--timeout SECONDS gives it longer; 0 is no limit",
            exit=Exit.FAILED,
        )


def _check_room(launch: plan.Launch, each: int) -> None:
    """Raises TeenyError ``launch-refused`` where the CTAs of a cooperative grid have no room all at once."""
    most = COOPERATIVE_BYTES // each
    if launch.ctas > most:
        raise TeenyError(
            "launch-refused",
            f"a cooperative grid of {launch.ctas:,} CTAs, but this device has room for {most:,} of them at once",
            hint="launch fewer CTAs; a GPU holds some thousands at most",
            exit=Exit.UNSUPPORTED,
        )


def parameters(image: Image, launch: plan.Launch, address_of: Callable[[str], int]) -> Bytes:
    """The parameter buffer of a launch; ``address_of`` gives a buffer's address by its name."""
    params = aligned_bytes(max(image.param_bytes, 64))
    for argument in launch.args:
        if argument.offset is not None:
            raw = plan.encode_argument(argument, address_of, encoded)
            params[argument.offset : argument.offset + len(raw)] = np.frombuffer(raw, np.uint8)
    return params
