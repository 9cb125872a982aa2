"""The one file that touches CUDA's Python packages: every call to the driver that teeny makes, with its types.

``cuda.core`` opens the device and answers for its properties. What must fail with a number, or take an argument's
exact bytes, goes through ``cuda.bindings.driver``: ``cuda.core`` turns a CUresult into text, and takes no struct as a
kernel's argument.

Tests hand in stand-ins for the two modules. May import ``host``, ``devices.releases`` and, for types, ``launch.plan``
and ``ptx.model``.
"""

from __future__ import annotations

import ctypes
import importlib
import re
import warnings
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from teenycli.devices.cuda.host import Aligned, Arguments, fastest_first
from teenycli.devices.releases import Releases
from teenycli.ptx.model import Triple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from teenycli.launch.plan import TensorMap

#: CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER and CUDA_ERROR_UNKNOWN, for failures that bear no number of their own.
NEEDS_NEWER_DRIVER = 36
UNKNOWN = 999
_NEWER, _UNKNOWN = "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "CUDA_ERROR_UNKNOWN"
_NOT_READY = 600
_NOT_FOUND = 500
#: CUDA_ERROR_NOT_SUPPORTED, and a driver older than CUDA 11.2.
_NO_POOLS = (801, NEEDS_NEWER_DRIVER)
_INVALID_VALUE = 1
#: A CUresult in a text of ``cuda.core``: by name, or by number.
_NAMED = re.compile(r"\b(CUDA_ERROR_[A-Z0-9_]+)|ERROR CODE: ([0-9]+)$")
#: Bytes of each of the two JIT logs; what does not fit is cut by the driver.
_LOG_BYTES = 64 * 1024
#: PTX that any driver takes.
_EMPTY = ".version 6.4\n.target {target}\n.address_size 64\n.visible .entry empty()\n{{\nret;\n}}\n"
#: cuTensorMapEncodeTiled: map; type, rank; address, extents, strides, box, element strides; four words.
_ENCODE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, *(ctypes.c_void_p,) * 5, *(ctypes.c_int,) * 4
)
#: CUtensorMapDataType by element type; what only moves needs no type but its width.
_MAP_TYPES = {
    "bool": "UINT8", "i8": "UINT8", "u8": "UINT8", "e4m3": "UINT8", "e5m2": "UINT8", "i16": "UINT16", "u16": "UINT16",
    "i32": "INT32", "u32": "UINT32", "i64": "INT64", "u64": "UINT64", "ptr": "UINT64", "f16": "FLOAT16",
    "bf16": "BFLOAT16", "f32": "FLOAT32", "f64": "FLOAT64",
}  # fmt: skip


class DriverError(Exception):
    """A call that failed: the CUresult as ``code``, its ``name``, the driver's own ``words``, the function called."""

    def __init__(self, code: int, name: str, words: str, call: str, log: str = "") -> None:
        super().__init__(f"{call}: {name}: {words}")
        self.code = code
        self.name = name
        self.words = words
        self.call = call
        self.log = log


class PackageError(Exception):
    """``cuda.core`` or ``cuda.bindings`` is not installed, too old, or cannot be imported; says which and why."""


#: A function of the bindings: the CUresult, and then its results.
Function = Callable[..., tuple[Any, ...]]


class Config(Struct, frozen=True):
    """A launch as the driver wants it: ``grid`` in CTAs (in clusters for an entry with ``.blocksareclusters``)."""

    grid: Triple
    block: Triple
    shared: int = 0
    cluster: Triple | None = None
    cooperative: bool = False
    pdl: bool = False


class Packages(Struct, frozen=True):
    """``cuda.core``, ``cuda.bindings.driver``, and what the former raises when the driver refuses."""

    core: Any
    bindings: Any
    error: type[Exception]


def packages() -> Packages:
    """The CUDA packages, imported. Raises PackageError."""
    loaded = []
    for name in ("cuda.core", "cuda.bindings.driver"):
        try:
            loaded.append(importlib.import_module(name))
        except ImportError as error:
            raise PackageError(f"{name}: {error}") from None
    core, bindings = loaded
    if not hasattr(core, "Device"):
        raise PackageError(f"cuda.core {getattr(core, '__version__', '')} is older than 1.0")
    try:
        # cuda.core has no public name for its exception.
        refusal: type[Exception] = importlib.import_module("cuda.core._utils.cuda_utils").CUDAError
    except (ImportError, AttributeError):
        return Packages(core, bindings, RuntimeError)
    return Packages(core, bindings, refusal)


class Driver:
    """One GPU, opened. Every method raises DriverError when the driver refuses, and nothing else.

    Handles (module, function, event) are the objects of ``cuda.bindings``; addresses are integers.
    """

    def __init__(self, index: int, packages: Packages) -> None:
        self._cu = packages.bindings
        self._error = packages.error
        # cuda.core warns of a driver older than the bindings; what that driver lacks is told where it is needed.
        with self._naming("cuda.core.Device"), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            self._device = packages.core.Device(index)
        self._functions: dict[str, Function] = {}
        # The primary context is held by us, and not by cuda.core, which lets go of what it holds when the process ends:
        # the last to go would wait for a kernel that never ends.
        ordinal = self._call("cuDeviceGet", index)
        self._context = self._call("cuDevicePrimaryCtxRetain", ordinal)
        with Releases() as held:
            held.later(self._call, "cuDevicePrimaryCtxRelease", ordinal)
            self.set_current()
            self._pools = bool(self.property("memory_pools_supported"))
            #: Addresses that come from the device's pool.
            self._pooled: set[int] = set()
            self._stream = self._call("cuStreamCreate", self._cu.CUstream_flags.CU_STREAM_DEFAULT.value)
            self._held = held.pop_all()
            self._held.later(self._call, "cuStreamDestroy", self._stream)

    # --- the device ----------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        with self._naming("cuda.core.Device.name"):
            return str(self._device.name)

    @property
    def sm(self) -> int:
        """Compute capability times ten."""
        with self._naming("cuda.core.Device.compute_capability"):
            major, minor = self._device.compute_capability
        return int(major) * 10 + int(minor)

    def cuda_version(self) -> tuple[int, int]:
        """The newest CUDA version that the driver supports."""
        number = int(self._call("cuDriverGetVersion"))
        return number // 1000, number % 1000 // 10

    def property(self, name: str) -> int:
        """A property of the device, by the name that ``cuda.core.DeviceProperties`` gives it."""
        with self._naming(f"cuda.core.DeviceProperties.{name}"):
            return int(getattr(self._device.properties, name))

    def set_current(self) -> None:
        """Make the device's primary context that of the calling thread."""
        self._call("cuCtxSetCurrent", self._context)

    # --- memory --------------------------------------------------------------------------------------------------

    def memory(self) -> tuple[int, int]:
        """Free and total bytes."""
        free, total = self._call("cuMemGetInfo")
        return int(free), int(total)

    def allocate(self, nbytes: int) -> int:
        """The address of ``nbytes`` (at least one) of device memory, divisible by 256.

        From the device's pool, in the order of our stream, which the copies of this class wait for; plainly where the
        device has no pools.
        """
        if self._pools:
            try:
                address = int(self._call("cuMemAllocAsync", nbytes, self._stream))
            except DriverError as error:
                if error.code not in _NO_POOLS:
                    raise
                self._pools = False
            else:
                self._pooled.add(address)
                return address
        return int(self._call("cuMemAlloc", nbytes))

    def free(self, address: int) -> None:
        pointer = self._cu.CUdeviceptr(address)
        if address in self._pooled:
            self._pooled.discard(address)
            self._call("cuMemFreeAsync", pointer, self._stream)
        else:
            self._call("cuMemFree", pointer)

    def copy_in(self, address: int, host: int, nbytes: int) -> None:
        """Copy ``nbytes`` from the host address ``host``; they have arrived when this returns."""
        self.copy_in_later(address, host, nbytes)
        self.settle()

    def copy_out(self, host: int, address: int, nbytes: int) -> None:
        self.copy_out_later(host, address, nbytes)
        self.settle()

    def pin(self, nbytes: int) -> int:
        """The address of ``nbytes`` of the host's memory that stays where it is, for copies in the background."""
        return int(self._call("cuMemHostAlloc", nbytes, 0))

    def unpin(self, host: int) -> None:
        self._call("cuMemFreeHost", host)

    def copy_in_later(self, address: int, host: int, nbytes: int) -> None:
        """Queue a copy: all is queued in our stream, since memory of the pool is there in its order. An event recorded
        after it tells when it is done, if the host's memory is pinned."""
        self._call("cuMemcpyHtoDAsync", self._cu.CUdeviceptr(address), host, nbytes, self._stream)

    def copy_out_later(self, host: int, address: int, nbytes: int) -> None:
        """Queue a copy to the host's memory."""
        self._call("cuMemcpyDtoHAsync", host, self._cu.CUdeviceptr(address), nbytes, self._stream)

    def settle(self) -> None:
        """Wait for all that is queued in our stream. What kernels have printed comes out, even when this fails."""
        self._call("cuStreamSynchronize", self._stream)

    def encode_tensor_map(self, of: TensorMap, address: int) -> bytes:
        """The bytes of a tensor map over memory at ``address``. The driver counts dimensions from the fastest.

        The driver is called past the bindings, which hand it a map at no multiple of 64 bytes, as its interface wants
        one, and no strides at all where there is one dimension.
        """

        def word(kind: str, name: str) -> int:
            return int(getattr(getattr(self._cu, f"CUtensorMap{kind}"), f"CU_TENSOR_MAP_{name}"))

        name = "cuTensorMapEncodeTiled"
        map = Aligned(of.SIZE)
        fill = "NAN_REQUEST_ZERO_FMA" if of.fill == "nan" else "NONE"
        code = _ENCODE(self._address_of(name, 12000))(
            map.start,
            word("DataType", f"DATA_TYPE_{_MAP_TYPES[of.dtype.name]}"),
            len(of.shape),
            address,
            fastest_first(ctypes.c_uint64, of.shape),
            fastest_first(ctypes.c_uint64, of.strides or (16,)),
            fastest_first(ctypes.c_uint32, of.box),
            fastest_first(ctypes.c_uint32, of.element_strides),
            word("Interleave", f"INTERLEAVE_{of.interleave.upper()}"),
            word("Swizzle", f"SWIZZLE_{of.swizzle.upper()}"),
            word("L2promotion", "L2_PROMOTION_NONE"),
            word("FloatOOBfill", f"FLOAT_OOB_FILL_{fill}"),
        )
        if code:
            raise self._refusal(self._result(code) or code, name)
        return map.read()

    def _address_of(self, name: str, version: int) -> int:
        """Where a function of the driver is, as it was in a version of CUDA (12000 is 12.0)."""
        address = int(self._call("cuGetProcAddress", name.encode(), version, 0)[0] or 0)
        if not address:
            raise DriverError(NEEDS_NEWER_DRIVER, _NEWER, f"this driver has no {name}", name)
        return address

    # --- code ----------------------------------------------------------------------------------------------------

    def load(self, image: bytes) -> Any:
        """A module from PTX text that ends with a NUL byte, or from machine code.

        The error's ``log`` is the JIT's, errors first.
        """
        option = self._cu.CUjit_option
        info, errors = bytearray(_LOG_BYTES), bytearray(_LOG_BYTES)
        options = (
            (option.CU_JIT_INFO_LOG_BUFFER, info),
            (option.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, _LOG_BYTES),
            (option.CU_JIT_ERROR_LOG_BUFFER, errors),
            (option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, _LOG_BYTES),
        )
        names, values = [name for name, _ in options], [value for _, value in options]
        try:
            return self._call("cuModuleLoadDataEx", image, len(options), names, values)
        except DriverError as error:
            error.log = "\n".join(text for text in (_text(errors), _text(info)) if text)
            raise

    def unload(self, module: Any) -> None:
        self._call("cuModuleUnload", module)

    def function(self, module: Any, name: str) -> Any:
        """The entry ``name`` of a module."""
        return self._call("cuModuleGetFunction", module, name.encode())

    def load_code(self, function: Any) -> None:
        """Have an entry's code on the device now. A driver leaves that to the first launch, whose time it then counts
        in (CUDA C++ Programming Guide, "Lazy Loading"); one older than CUDA 12.4 cannot be asked."""
        try:
            self._call("cuFuncLoad", function)
        except DriverError as error:
            if error.code != NEEDS_NEWER_DRIVER:
                raise

    def variable(self, module: Any, name: str) -> tuple[int, int] | None:
        """Address and size in bytes of a variable of a module; None where the compiled code has none of that name."""
        try:
            address, nbytes = self._call("cuModuleGetGlobal", module, name.encode())
        except DriverError as error:
            if error.code == _NOT_FOUND:
                return None
            raise
        return int(address), int(nbytes)

    def attribute(self, function: Any, name: str) -> int:
        """A CUfunction_attribute, by its name without ``CU_FUNC_ATTRIBUTE_``."""
        return int(self._call("cuFuncGetAttribute", self._function_attribute(name), function))

    def set_attribute(self, function: Any, name: str, value: int) -> None:
        self._call("cuFuncSetAttribute", function, self._function_attribute(name), value)

    def _function_attribute(self, name: str) -> Any:
        return getattr(self._cu.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")

    def parameters(self, function: Any, most: int) -> tuple[tuple[int, int], ...] | None:
        """Offset and size in bytes of the first ``most`` parameters, as the driver lays them out.

        Fewer when there are no more; None from a driver older than CUDA 12.4, which does not say.
        """
        table: list[tuple[int, int]] = []
        while len(table) < most:
            try:
                offset, size = self._call("cuFuncGetParamInfo", function, len(table))
            except DriverError as error:
                if error.code == NEEDS_NEWER_DRIVER:
                    return None
                if error.code == _INVALID_VALUE:
                    break
                raise
            table.append((int(offset), int(size)))
        return tuple(table)

    def resident_ctas(self, function: Any, threads: int, shared: int) -> int:
        """How many CTAs of so many threads and bytes of dynamic shared memory the whole GPU holds at once."""
        each = int(self._call("cuOccupancyMaxActiveBlocksPerMultiprocessor", function, threads, shared))
        return each * self.property("multiprocessor_count")

    # --- launches ------------------------------------------------------------------------------------------------

    def prepared(
        self, function: Any, config: Config, arguments: Sequence[bytes], start: Any, end: Any
    ) -> Callable[[], None]:
        """What queues one launch between two events each time that it is called: all else is done here, so that no GPU
        waits for it meanwhile. ``arguments`` are the exact bytes of each parameter, in order."""
        native = self._cu.CUlaunchConfig()
        native.gridDimX, native.gridDimY, native.gridDimZ = config.grid
        native.blockDimX, native.blockDimY, native.blockDimZ = config.block
        native.sharedMemBytes = config.shared
        native.hStream = self._stream
        attributes = self._launch_attributes(config)
        native.attrs = attributes
        native.numAttrs = len(attributes)
        held, stream = Arguments(arguments), self._stream
        record, launch = self._function("cuEventRecord"), self._function("cuLaunchKernelEx")

        def queue() -> None:
            record(start, stream)
            launch(native, function, held.pointers, 0)
            record(end, stream)

        return queue

    def warm_up(self, held: Releases) -> None:
        """Launch an empty kernel and wait for it; ``held`` lets its module go."""
        target = "sm_75" if self.sm >= 75 else "sm_50"
        module = self.load(_EMPTY.format(target=target).encode() + b"\0")
        held.later(self.unload, module)
        self._call("cuLaunchKernel", self.function(module, "empty"), *(1,) * 6, 0, self._stream, 0, 0)
        self.settle()

    def _launch_attributes(self, config: Config) -> list[Any]:
        def attribute(name: str) -> Any:
            made = self._cu.CUlaunchAttribute()
            made.id = getattr(self._cu.CUlaunchAttributeID, f"CU_LAUNCH_ATTRIBUTE_{name}")
            return made

        found = []
        if config.cluster is not None:
            cluster = attribute("CLUSTER_DIMENSION")
            dim = cluster.value.clusterDim
            dim.x, dim.y, dim.z = config.cluster
            found.append(cluster)
        if config.cooperative:
            cooperative = attribute("COOPERATIVE")
            cooperative.value.cooperative = 1
            found.append(cooperative)
        if config.pdl:
            pdl = attribute("PROGRAMMATIC_STREAM_SERIALIZATION")
            pdl.value.programmaticStreamSerializationAllowed = 1
            found.append(pdl)
        return found

    def event(self) -> Any:
        """A new event that keeps time."""
        return self._call("cuEventCreate", self._cu.CUevent_flags.CU_EVENT_DEFAULT.value)

    def record(self, event: Any) -> None:
        self._call("cuEventRecord", event, self._stream)

    def done(self, event: Any) -> bool:
        """Whether all that was queued before ``event`` has finished; raises what went wrong in it."""
        return int(self._function("cuEventQuery")(event)[0]) != _NOT_READY

    def wait(self, event: Any) -> None:
        """Until all that was queued before ``event`` has finished; raises what went wrong in it."""
        self._call("cuEventSynchronize", event)

    def milliseconds(self, start: Any, end: Any) -> float:
        return float(self._call("cuEventElapsedTime", start, end))

    def destroy_event(self, event: Any) -> None:
        self._call("cuEventDestroy", event)

    def close(self) -> None:
        """Let the stream and our hold on the primary context go; others in this process may use it on."""
        self._held.close()

    # --- failures ------------------------------------------------------------------------------------------------

    def _call(self, name: str, *arguments: Any) -> Any:
        """Call a function of the driver: its result, its results as a tuple, or None."""
        answer = self._function(name)(*arguments)
        return answer[1:] if len(answer) > 2 else answer[-1] if len(answer) == 2 else None

    def _function(self, name: str) -> Function:
        """A function of the driver that raises DriverError where it fails, and else gives the bindings' own answer: the
        CUresult, which is then CUDA_SUCCESS or CUDA_ERROR_NOT_READY, and the results."""
        found = self._functions.get(name)
        if found is None:
            found = self._functions[name] = self._checked(name)
        return found

    def _checked(self, name: str) -> Function:
        function: Function | None = getattr(self._cu, name, None)
        if function is None:
            raise DriverError(NEEDS_NEWER_DRIVER, _NEWER, f"this cuda.bindings has no {name}", name)

        def checked(*arguments: Any) -> tuple[Any, ...]:
            try:
                answer = function(*arguments)
            except (RuntimeError, ValueError) as error:
                # The bindings raise where the driver lacks the function, and for a CUresult newer than they are.
                missing = isinstance(error, RuntimeError)
                code, word = (NEEDS_NEWER_DRIVER, _NEWER) if missing else (UNKNOWN, _UNKNOWN)
                raise DriverError(code, word, str(error), name) from None
            status = answer[0]
            if status and status != _NOT_READY:
                raise self._refusal(status, name)
            return answer

        return checked

    def _refusal(self, status: Any, call: str) -> DriverError:
        return DriverError(int(status), str(getattr(status, "name", status)), self._words(status), call)

    def _words(self, status: Any) -> str:
        """The driver's own; none of a number that the bindings do not know."""
        if not isinstance(status, self._cu.CUresult):
            return ""
        failed, words = self._cu.cuGetErrorString(status)
        return "" if int(failed) or words is None else words.decode("utf-8", "replace")

    @contextmanager
    def _naming(self, call: str) -> Iterator[None]:
        """Errors of ``cuda.core`` as DriverError: their text has the CUresult's name or number."""
        try:
            yield
        except (self._error, RuntimeError, ValueError) as error:
            text = str(error)
            result = self._named(text)
            if result is None:
                raise DriverError(UNKNOWN, _UNKNOWN, text, call) from None
            raise DriverError(int(result), result.name, text.removeprefix(f"{result.name}: "), call) from None

    def _named(self, text: str) -> Any:
        """The CUresult that an error's text names, or whose number it gives because the driver has no name for it."""
        found = _NAMED.search(text)
        if found is None:
            return None
        if found[1] is not None:
            return getattr(self._cu.CUresult, found[1], None)
        return self._result(int(found[2]))

    def _result(self, number: int) -> Any:
        return next((result for result in self._cu.CUresult if int(result) == number), None)


def _text(log: bytearray) -> str:
    return bytes(log).partition(b"\0")[0].decode("utf-8", "replace").strip()
