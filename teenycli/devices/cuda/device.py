"""The CUDA device: loads PTX through the driver's JIT and launches it, with every refusal explained.

May import ``arch``, ``errors``, ``exits``, ``launch.plan``, ``ptx``, ``devices.base``, ``devices.releases``, the files
of its own house, and numpy in the functions that move arrays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from msgspec import Struct
from msgspec.structs import replace

from teenycli.arch import Limits, parse_target, takes_target
from teenycli.devices.base import DeviceBuffer, Kernel, LaunchTime, Run
from teenycli.devices.cuda import errors
from teenycli.devices.cuda.driver import (
    NEEDS_NEWER_DRIVER,
    Config,
    Driver,
    DriverError,
    PackageError,
    Packages,
    packages,
)
from teenycli.devices.cuda.errors import Facts
from teenycli.devices.cuda.gpu import Gpu
from teenycli.devices.cuda.parameters import compare_parameters
from teenycli.devices.cuda.printing import may_print, printing
from teenycli.devices.cuda.probe import kernel_module_version
from teenycli.devices.cuda.staging import Progress, Staging
from teenycli.devices.releases import Releases
from teenycli.errors import Finding, Place, TeenyError
from teenycli.exits import Exit, leave_at_once
from teenycli.launch.plan import Encoder, Launch, TensorMap, encode_argument
from teenycli.ptx.model import Function, Module, Source, Space, Triple
from teenycli.ptx.strip import strip_debug
from teenycli.releases import dotted

if TYPE_CHECKING:
    from teenycli.devices.base import Bytes

#: What the driver aligns an allocation to (CUDA C++ Programming Guide, "Device Memory Accesses").
_DRIVER_ALIGN = 256
#: Seconds for which a launch is asked after without a pause, and the longest pause after that.
_SPIN, _PAUSE = 0.002, 0.005
#: Spaces of variables that a launch, or whoever sets them, may have changed.
_SET_ANEW = (Space.GLOBAL, Space.CONST)
#: Why a device is of no use that was closed.
_CLOSED = "it is closed"
#: Least architecture with clusters and programmatic dependent launch.
_HOPPER = 90


class CudaKernel(Struct):
    """An entry, compiled and loaded. ``opted_shared``: bytes of dynamic shared memory it has been allowed so far.

    ``prints``: whether something in its module may, if only on a failed assertion. ``cached`` stays False: the driver
    has a cache of its own and does not say what came from it.
    """

    module: Module
    entry: Function
    function: Any
    facts: Facts
    compile_ms: float
    findings: tuple[Finding, ...] = ()
    prints: bool = False
    opted_shared: int = 0
    cached: bool = False


class CudaBuffer(Struct, frozen=True):
    """Device memory; ``allocation`` is the address to free, ``address`` the aligned one within."""

    name: str
    address: int
    nbytes: int
    allocation: int


class CudaDevice:
    """One NVIDIA GPU. Raises TeenyError with exit NO_DEVICE when it cannot be opened.

    What kernels print goes to standard output, or with ``prints_to_stderr`` to standard error.

    After a fault, a time-out or an interrupt the GPU's context is of no more use: every call but ``close`` raises
    ``context-lost``, and ``close`` leaves all to the end of the process. ``progress`` is told of large copies.
    """

    def __init__(
        self,
        index: int = 0,
        cuda: Packages | None = None,
        progress: Progress | None = None,
        *,
        prints_to_stderr: bool = False,
    ) -> None:
        self._lost: str | None = None
        self._is_warm = False
        self._prints_to_stderr = prints_to_stderr
        self._modules: dict[Source, Any] = {}
        #: Address and first content of a module's variables, and the modules whose variables may hold something else.
        self._variables: dict[Source, list[tuple[int, Bytes]]] = {}
        self._dirty: set[Source] = set()
        self._allocations: set[int] = set()
        try:
            with Releases() as held:
                self._driver = driver = Driver(index, cuda or packages())
                held.later(driver.close)
                self._gpu = Gpu(f"cuda:{index}", driver.name, driver.sm, driver.cuda_version())
                self._limits = _limits(driver, self._gpu.sm)
                self._start = driver.event()
                held.later(driver.destroy_event, self._start)
                self._end = driver.event()
                held.later(driver.destroy_event, self._end)
                self._staging = Staging(driver, progress)
                held.later(self._staging.close)
                self._held = held.pop_all()
        except PackageError as error:
            message = f"a Python package that cuda:{index} needs cannot be used: {error}"
            hint = "pip install 'cuda-core>=1' cuda-python"
            raise TeenyError("no-cuda-package", message, hint=hint, exit=Exit.NO_DEVICE) from None
        except DriverError as error:
            raise errors.cannot_open(error, f"cuda:{index}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        return self._gpu.name

    @property
    def description(self) -> str:
        """``NVIDIA H200, sm_90, driver 580.95.05 (CUDA 13.0)``."""
        module = kernel_module_version()
        driver = "driver" if module is None else f"driver {module}"
        return f"{self._gpu.product}, sm_{self._gpu.sm}, {driver} (CUDA {dotted(self._gpu.cuda)})"

    @property
    def gpu(self) -> Gpu:
        """Architecture and driver, for choices that need them as data."""
        return self._gpu

    @property
    def limits(self) -> Limits:
        return self._limits

    def layout_sm(self, module: Module) -> int:  # noqa: ARG002  (the JIT assembles for the GPU, whatever .target says)
        return self._gpu.sm

    # --- kernels -------------------------------------------------------------------------------------------------

    def load(self, module: Module, entry: str) -> CudaKernel:
        """Compile ``module`` unless an earlier entry of it did, and fetch ``entry``.

        Raises TeenyError: ``unknown-entry``; ``target-architecture``, ``ptx-version``, ``invalid-ptx``, ``no-jit``
        (exit UNSUPPORTED, the JIT's log in the note); ``parameter-layout``; ``cuda-driver``.
        """
        function = next((f for f in module.entries if f.name == entry), None)
        if function is None:
            raise errors.unknown_entry(module, entry)
        if not takes_target(parse_target(module.target), self._gpu.sm):
            raise errors.wrong_target(module, self._gpu)
        self._make_ready()
        began = time.perf_counter()
        try:
            handle = self._driver.function(self._module(module), entry)
            self._driver.load_code(handle)
            compile_ms = (time.perf_counter() - began) * 1e3
            facts = Facts(
                self._limits,
                static_shared=self._driver.attribute(handle, "SHARED_SIZE_BYTES"),
                max_threads=self._driver.attribute(handle, "MAX_THREADS_PER_BLOCK"),
                registers=self._driver.attribute(handle, "NUM_REGS"),
            )
            table = self._driver.parameters(handle, len(function.params) + 1)
        except DriverError as failure:
            if failure.code in errors.ENDS:
                raise self._failed(failure, f"loading '{entry}'") from None
            raise errors.load_error(failure, module, entry, self._gpu) from None
        findings: tuple[Finding, ...] = ()
        if table is not None:
            where = Place(module.source.name, function.at.line, function.at.column)
            findings = compare_parameters(table, function, self._gpu.sm, where)
        return CudaKernel(module, function, handle, facts, compile_ms, findings, may_print(module.source))

    def _module(self, module: Module) -> Any:
        source = module.source
        if source not in self._modules:
            image = source.image or strip_debug(source.text).encode() + b"\0"
            loaded = self._driver.load(image)
            self._modules[source] = loaded
            self._held.later(self._driver.unload, loaded)
            self._variables[source] = [*self._contents(module, loaded)]
        return self._modules[source]

    def _contents(self, module: Module, loaded: Any) -> Iterator[tuple[int, Bytes]]:
        """Where variables are, and what they hold; machine code does not say which there are."""
        import numpy as np

        for variable in module.variables:
            there = self._driver.variable(loaded, variable.name) if variable.space in _SET_ANEW else None
            if there is not None:
                content = np.empty(there[1], np.uint8)
                self._driver.copy_out(content.ctypes.data, there[0], content.nbytes)
                yield there[0], content

    def reset_variables(self, module: Module) -> None:
        """Write into variables what they held when the module was loaded; those whose name the driver does not know
        stay as they are."""
        if module.source not in self._dirty:
            return
        self._make_ready()
        with self._telling("setting variables anew"):
            for address, content in self._variables.get(module.source, ()):
                self._driver.copy_in(address, content.ctypes.data, content.nbytes)
        self._dirty.discard(module.source)

    def set_variable(self, kernel: Kernel, name: str, data: Bytes) -> None:
        """Write into a variable of the kernel's module, if its compiled code has it.

        Raises TeenyError ``variable-size`` where it has another size there.
        """
        if not isinstance(kernel, CudaKernel):
            raise TypeError(f"{type(kernel).__name__} is no kernel of {self.name}")
        self._make_ready()
        self._dirty.add(kernel.module.source)
        with self._telling(f"setting the variable '{name}'"):
            found = self._driver.variable(self._modules[kernel.module.source], name)
            if found is None:
                return
            address, nbytes = found
            if nbytes != data.nbytes:
                message = f"the variable '{name}' has {data.nbytes:,} bytes by the PTX, and {nbytes:,} by the driver"
                raise TeenyError("variable-size", message, exit=Exit.FAILED)
            self._driver.copy_in(address, data.ctypes.data, nbytes)

    def prepare(self, kernel: Kernel, launch: Launch, buffers: Mapping[str, DeviceBuffer]) -> Run:
        """One launch, encoded and allowed; its time is the GPU's own, between two events around it.

        Raises TeenyError, exit FAILED: ``argument-count``, ``argument-size``, ``launch-refused``. To run it raises
        ``launch-refused``, ``timeout``, and the ids of ``errors.FAULTS``.
        """
        if not isinstance(kernel, CudaKernel):
            raise TypeError(f"{type(kernel).__name__} is no kernel of {self.name}")
        self._make_ready()
        arguments = _arguments(kernel, launch, buffers, self._encode_map)
        if not errors.representable(launch, kernel.entry):
            raise errors.launch_refused(launch, kernel.module, kernel.entry, kernel.facts)
        config = launch_config(launch, kernel.entry, self._gpu.sm)
        self._warm_up()
        self._dirty.add(kernel.module.source)
        try:
            self._opt_in(kernel, launch)
            queue = self._driver.prepared(kernel.function, config, arguments, self._start, self._end)
        except DriverError as failure:
            raise self._launch_error(failure, kernel, launch) from None
        run = partial(self._run, kernel, launch, queue, f"launch {launch.index} of '{launch.entry}' has not ended")
        return partial(self._printing, run) if kernel.prints else run

    def _warm_up(self) -> None:
        """Launch an empty kernel, once: a context's first launch takes the host longer, and its time would be ours."""
        if self._is_warm:
            return
        self._is_warm = True
        try:
            self._driver.warm_up(self._held)
        except DriverError as failure:
            if failure.code in errors.ENDS:
                raise self._failed(failure, "launching an empty kernel") from None
            # What is wrong, the launch itself will meet and tell.

    def _run(
        self, kernel: CudaKernel, launch: Launch, queue: Callable[[], None], unended: str, timeout: float
    ) -> LaunchTime:
        self._make_ready()
        # Should anything break in from here on, the kernel may still run, and every call would wait for it.
        self._lost = unended
        try:
            queue()
            self._wait(launch, timeout)
            if kernel.prints:
                self._driver.settle()  # which brings out what it printed; to ask for the event does not
            milliseconds = self._driver.milliseconds(self._start, self._end)
        except DriverError as failure:
            raise self._launch_error(failure, kernel, launch) from None
        self._lost = None
        return LaunchTime(milliseconds)

    def _printing(self, run: Run, timeout: float) -> LaunchTime:
        """Run what prints: it is out when this ends."""
        with printing(to_stderr=self._prints_to_stderr):
            return run(timeout)

    def _encode_map(self, of: TensorMap, address: int) -> bytes:
        """Raises TeenyError ``tensormap-architecture`` (exit UNSUPPORTED), ``cuda-driver``."""
        if self._gpu.sm < _HOPPER:
            message = f"tensor maps need sm_{_HOPPER} or newer, and {self._gpu} is not that"
            raise TeenyError("tensormap-architecture", message, exit=Exit.UNSUPPORTED)
        with self._telling(f"encoding the tensor map '{of.name}'"):
            return self._driver.encode_tensor_map(of, address)

    def _opt_in(self, kernel: CudaKernel, launch: Launch) -> None:
        """Ask for what a kernel does not get unasked: shared memory over 48 KiB, clusters over the portable size."""
        total = kernel.facts.static_shared + launch.shared
        if total > self._limits.shared_optin:
            raise errors.launch_refused(launch, kernel.module, kernel.entry, kernel.facts)
        if total > self._limits.shared_default and launch.shared > kernel.opted_shared:
            self._driver.set_attribute(kernel.function, "MAX_DYNAMIC_SHARED_SIZE_BYTES", launch.shared)
            kernel.opted_shared = launch.shared
        x, y, z = launch.cluster
        if x * y * z > self._limits.cluster and self._gpu.sm >= _HOPPER:
            self._driver.set_attribute(kernel.function, "NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1)

    def _wait(self, launch: Launch, timeout: float) -> None:
        """Until the launch has ended. An interrupt gets through, as no call of the driver blocks here."""
        began = time.monotonic()
        while not self._driver.done(self._end):
            passed = time.monotonic() - began
            if timeout and passed > timeout:
                raise errors.timed_out(launch, timeout)
            if passed > _SPIN:
                time.sleep(min(passed / 10, _PAUSE))

    def _launch_error(self, failure: DriverError, kernel: CudaKernel, launch: Launch) -> TeenyError:
        if failure.code in errors.FAULTS:
            self._lost = f"launch {launch.index} of '{launch.entry}' met a fault"
            if kernel.prints:
                with suppress(DriverError):  # it fails as all calls do now, but brings out what was printed before
                    self._driver.settle()
            return errors.fault(failure, launch, kernel.module, kernel.entry)
        self._lost = None
        is_refusal = failure.call in ("cuLaunchKernelEx", "cuFuncSetAttribute")
        if not is_refusal or failure.code == NEEDS_NEWER_DRIVER or failure.code in errors.ENDS:
            return self._failed(failure, f"running launch {launch.index} of '{launch.entry}'")
        facts = kernel.facts
        if launch.cooperative:
            facts = replace(facts, resident=self._resident(kernel, launch))
        return errors.launch_refused(launch, kernel.module, kernel.entry, facts, failure)

    def _resident(self, kernel: CudaKernel, launch: Launch) -> int | None:
        try:
            return self._driver.resident_ctas(kernel.function, launch.threads, launch.shared)
        except DriverError:
            return None

    # --- memory --------------------------------------------------------------------------------------------------

    def upload(self, name: str, data: Bytes, align: int = 256) -> CudaBuffer:
        """Raises TeenyError ``out-of-memory`` with the sizes."""
        import numpy as np

        self._make_ready()
        host = np.ascontiguousarray(data)
        align = max(align, 1)
        slack = align if align > _DRIVER_ALIGN else 0
        try:
            # No allocation may be empty, and a buffer without elements has an address all the same.
            allocation = self._driver.allocate(max(host.nbytes, 1) + slack)
        except DriverError as failure:
            if failure.code == errors.OUT_OF_MEMORY:
                raise errors.out_of_memory(failure, f"buffer '{name}'", host.nbytes, self._memory()) from None
            raise self._failed(failure, f"allocating buffer '{name}'") from None
        self._allocations.add(allocation)
        buffer = CudaBuffer(name, -(-allocation // align) * align, host.nbytes, allocation)
        if host.nbytes:
            try:
                with self._telling(f"copying buffer '{name}' to {self.name}"):
                    self._staging.copy_in(f"copying '{name}' to {self.name}", buffer.address, host.ctypes.data,
                                          host.nbytes)  # fmt: skip
            except TeenyError:
                with suppress(TeenyError):  # what went wrong first is what is told
                    self.free(buffer)
                raise
        return buffer

    def download(self, buffer: DeviceBuffer) -> Bytes:
        import numpy as np

        self._make_ready()
        host = np.empty(buffer.nbytes, np.uint8)
        if buffer.nbytes:
            with self._telling(f"copying buffer '{buffer.name}' from {self.name}"):
                self._staging.copy_out(f"copying '{buffer.name}' from {self.name}", host.ctypes.data, buffer.address,
                                       buffer.nbytes)  # fmt: skip
        return host

    def free(self, buffer: DeviceBuffer) -> None:
        """Give a buffer's memory back before ``close`` does; nothing when that is done, or the context lost."""
        if not isinstance(buffer, CudaBuffer):
            raise TypeError(f"{type(buffer).__name__} is no buffer of {self.name}")
        if self._lost is None and buffer.allocation in self._allocations:
            self._make_ready()
            self._allocations.discard(buffer.allocation)
            with self._telling(f"freeing buffer '{buffer.name}'"):
                self._driver.free(buffer.allocation)

    def _memory(self) -> tuple[int, int] | None:
        try:
            return self._driver.memory()
        except DriverError:
            return None

    # --- the end -------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Free what is left; the second time nothing. Everything is tried, even when something fails."""
        refusal: TeenyError | None = None
        if self._lost is None:
            try:
                self._make_ready()  # another device may have come between
            except TeenyError as error:
                refusal = error
        usable, was_closed = self._lost is None, self._lost == _CLOSED
        self._lost = _CLOSED
        # Where it is not, a call might wait for ever, or fails as all do after a fault: the process's end frees all.
        held = self._held.pop_all() if usable else Releases()
        if not usable and not was_closed:
            leave_at_once()
        for allocation in self._allocations if usable else ():
            held.later(self._driver.free, allocation)
        self._allocations.clear()
        self._modules.clear()
        try:
            with self._telling(f"closing {self.name}"):
                held.close()
        finally:
            if refusal is not None:  # of several failures the first is told
                raise refusal

    def _make_ready(self) -> None:
        """Make the device's context current, whatever else this process did; raise when it is of no more use."""
        if self._lost is not None:
            message = f"{self.name} is of no more use: {self._lost}"
            raise TeenyError("context-lost", message, hint="start teeny again", exit=Exit.FAILED)
        try:
            self._driver.set_current()
        except DriverError as failure:
            raise self._failed(failure, f"making {self.name} current") from None

    @contextmanager
    def _telling(self, doing: str) -> Iterator[None]:
        try:
            yield
        except DriverError as failure:
            raise self._failed(failure, doing) from None

    def _failed(self, failure: DriverError, doing: str) -> TeenyError:
        """A failure with no story of its own. A fault may show in any call after it, and ends the context."""
        if failure.code in errors.ENDS:
            self._lost = f"{doing} met a fault"
        return errors.failed(failure, doing, self._gpu.cuda)


def launch_config(launch: Launch, entry: Function, sm: int) -> Config:
    """The launch as the driver counts: clusters instead of CTAs for an entry with ``.blocksareclusters``.

    A cluster of one is left out unless the entry has ``.explicitcluster`` (PTX ISA, "Cluster Dimension Directives").
    Programmatic dependent launch is a permission, which GPUs before sm_90 have no use for.
    """
    x, y, z = launch.grid
    if entry.directives.blocksareclusters:
        a, b, c = launch.cluster
        x, y, z = x // a, y // b, z // c
    needs_cluster = launch.cluster != (1, 1, 1) or entry.directives.explicitcluster
    return Config(
        (x, y, z),
        launch.block,
        launch.shared,
        launch.cluster if needs_cluster else None,
        launch.cooperative,
        launch.pdl and sm >= _HOPPER,
    )


def _arguments(
    kernel: CudaKernel, launch: Launch, buffers: Mapping[str, DeviceBuffer], encode_map: Encoder
) -> list[bytes]:
    """The exact bytes of each argument. The driver reads as many as the parameter has, so sizes must agree."""
    entry, where = kernel.entry, Place(kernel.module.source.name, kernel.entry.at.line, kernel.entry.at.column)
    if len(launch.args) != len(entry.params):
        raise TeenyError(
            "argument-count",
            f"'{entry.name}' takes {len(entry.params)} parameters, launch {launch.index} gives {len(launch.args)}",
            where=where,
            exit=Exit.FAILED,
        )
    encoded = []
    for argument, param in zip(launch.args, entry.params, strict=True):
        raw = encode_argument(argument, lambda name: buffers[name].address, encode_map)
        if len(raw) != param.size:
            raise TeenyError(
                "argument-size",
                f"argument {argument.index} '{argument.name}' is a {argument.kind} of {len(raw)} bytes, parameter "
                f"'{param.name}' takes {param.size}",
                where=where,
                exit=Exit.FAILED,
            )
        encoded.append(raw)
    return encoded


def _limits(driver: Driver, sm: int) -> Limits:
    def extents(of: str) -> Triple:
        x, y, z = (driver.property(f"max_{of}_dim_{axis}") for axis in "xyz")
        return x, y, z

    return Limits(
        threads_per_block=driver.property("max_threads_per_block"),
        block=extents("block"),
        grid=extents("grid"),
        cluster=8 if sm >= _HOPPER else 1,
        shared_default=driver.property("max_shared_memory_per_block"),
        shared_optin=driver.property("max_shared_memory_per_block_optin"),
        registers=driver.property("max_registers_per_block"),
        sm_threads=driver.property("max_threads_per_multiprocessor"),
        sm_blocks=driver.property("max_blocks_per_multiprocessor"),
        sm_shared=driver.property("max_shared_memory_per_multiprocessor"),
        shared_reserved=driver.property("reserved_shared_memory_per_block"),
    )
