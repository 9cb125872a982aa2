"""The CPU device: PTX compiled to vector code of this machine, every memory access checked.

Implements ``devices.base.Device``. Heavy imports (numpy, llvmlite) are made when a device is made.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Self

from teenycli.arch import Limits, limits_of, parse_target
from teenycli.devices.base import DeviceBuffer, Kernel, LaunchTime, Run
from teenycli.errors import Place, TeenyError, did_you_mean
from teenycli.exits import Exit
from teenycli.launch.plan import Launch
from teenycli.ptx.model import Function, Module

if TYPE_CHECKING:
    from teenycli.devices.base import Bytes


def available_threads() -> int:
    """Processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class CpuDevice:
    """A device of ``threads`` (default: every processor this process may use); ``cache`` keeps kernels on disk.

    ``output`` is called with each text that a kernel prints, from a thread of the pool, one at a time; the default
    writes to standard output. What it raises (OSError, ValueError) ends the launch.

    Raises TeenyError ``no-jit`` (exit NO_DEVICE) where llvmlite is missing.
    """

    def __init__(
        self, threads: int | None = None, cache: bool = True, output: Callable[[str], object] | None = None
    ) -> None:
        if find_spec("llvmlite") is None:
            raise TeenyError(
                "no-jit", "the CPU device compiles with llvmlite, which is not installed",
                hint="pip install llvmlite (there is none for macOS on x86-64)", exit=Exit.NO_DEVICE,
            )  # fmt: skip
        from teenycli.devices.cpu.launcher import Runner
        from teenycli.devices.cpu.memory import AddressSpace
        from teenycli.devices.cpu.variables import Held

        self.threads = threads or available_threads()
        self.cache = cache
        self._space = AddressSpace()
        self._variables = Held()
        self._runner = Runner(self._space, self.threads, output or sys.stdout.write)

    @property
    def name(self) -> str:
        return "cpu"

    @property
    def description(self) -> str:
        from teenycli.devices.cpu.build import machine

        return f"{machine().description}, {self.threads} thread{'s' if self.threads != 1 else ''}"

    @property
    def limits(self) -> Limits:
        """Those of the newest data-centre architecture, which no kernel that fits one exceeds."""
        return limits_of(100)

    def layout_sm(self, module: Module) -> int:
        return parse_target(module.target).sm

    def load(self, module: Module, entry: str) -> Kernel:
        """Compile ``entry``, or take it from the cache.

        Raises TeenyError ``unsupported-instruction``, ``machine-code`` (exit UNSUPPORTED), ``unknown-entry``, or what
        is wrong with the body's text.
        """
        from teenycli.devices.cpu import build, cache, kernel
        from teenycli.devices.cpu.hall import CpuKernel

        start = time.perf_counter()
        if module.source.image is not None:
            message = f"this is machine code for {module.target.replace('code_', 'sm_')}, and the CPU device runs PTX"
            hint = "give the PTX: nvcc -ptx, or cuobjdump -ptx FILE; a fatbin's is of use where it is not compressed "
            hint += "(nvcc --compress-mode=none)"
            where = Place(module.source.name)
            raise TeenyError("machine-code", message, where=where, hint=hint, exit=Exit.UNSUPPORTED)
        function = _entry(module, entry)
        sm = self.layout_sm(module)
        key = cache.key_of(module, function, sm) if self.cache else ""
        image = cache.read(key) if self.cache else None
        cached = image is not None
        if image is None:
            image = kernel.build(kernel.prepare(module, function, sm))
            if self.cache:
                cache.write(key, image)
        address, keep = build.load_object(image.code)
        held = self._variables.take(module, entry, image.variables, image.functions)
        return CpuKernel(module, entry, image, address, keep, (time.perf_counter() - start) * 1e3, cached, held)

    def set_variable(self, kernel: Kernel, name: str, data: Bytes) -> None:
        """Write into a variable of the kernel's module, if the kernel uses it."""
        from teenycli.devices.cpu.hall import CpuKernel

        assert isinstance(kernel, CpuKernel)
        number = kernel.image.variables.get(name)
        if number is not None:
            kernel.variables[number][1][: data.size] = data

    def reset_variables(self, module: Module) -> None:
        self._variables.reset(module)

    def upload(self, name: str, data: Bytes, align: int = 256) -> DeviceBuffer:
        """A buffer with a copy of ``data``."""
        return self._space.allocate(name, data, align)

    def free(self, buffer: DeviceBuffer) -> None:
        """Give a buffer's memory back; a kernel that still uses its address is stopped."""
        from teenycli.devices.cpu.memory import CpuBuffer

        assert isinstance(buffer, CpuBuffer)
        self._space.free(buffer)

    def download(self, buffer: DeviceBuffer) -> Bytes:
        from teenycli.devices.cpu.memory import CpuBuffer

        assert isinstance(buffer, CpuBuffer)
        assert buffer.data is not None, buffer.name
        return buffer.data.copy()

    def prepare(self, kernel: Kernel, launch: Launch, buffers: Mapping[str, DeviceBuffer]) -> Run:
        """One launch with its parameters laid out. To run it raises TeenyError for faults of the kernel and
        ``timeout`` (exit FAILED)."""
        from teenycli.devices.cpu.hall import CpuKernel
        from teenycli.devices.cpu.launcher import parameters

        assert isinstance(kernel, CpuKernel)
        laid = parameters(kernel.image, launch, lambda name: buffers[name].address)
        return lambda timeout: LaunchTime(self._runner.launch(kernel, launch, laid, timeout))

    def close(self) -> None:
        """End the pool's threads and give all memory back."""
        self._runner.pool.close()
        for buffer in self._space.buffers.values():
            buffer.data = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _entry(module: Module, name: str) -> Function:
    found = next((f for f in module.entries if f.name == name), None)
    if found is None:
        names = [f.name for f in module.entries]
        raise TeenyError(
            "unknown-entry",
            f"{module.source.name} has no entry '{name}'",
            hint=did_you_mean(name, names) or f"it has {', '.join(names) or 'none'}",
        )
    return found
