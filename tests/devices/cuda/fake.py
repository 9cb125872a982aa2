"""Stand-ins for ``cuda.core`` and ``cuda.bindings.driver``: they record every call, keep memory, fail on order.

They check what the real packages would choke on: types of handles and numbers, pointers that can be read.
``test_driver.py`` holds their names against the real packages.
"""

# ruff: noqa: N802  (functions are named as in the packages)

from __future__ import annotations

import ctypes
from collections import Counter
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

from teenycli.devices.cuda.driver import Packages

CUresult = IntEnum(
    "CUresult",
    {
        "CUDA_SUCCESS": 0, "CUDA_ERROR_INVALID_VALUE": 1, "CUDA_ERROR_OUT_OF_MEMORY": 2, "CUDA_ERROR_STUB_LIBRARY": 34,
        "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER": 36, "CUDA_ERROR_DEVICE_UNAVAILABLE": 46, "CUDA_ERROR_NO_DEVICE": 100,
        "CUDA_ERROR_INVALID_IMAGE": 200, "CUDA_ERROR_NO_BINARY_FOR_GPU": 209, "CUDA_ERROR_ECC_UNCORRECTABLE": 214,
        "CUDA_ERROR_INVALID_PTX": 218, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND": 221,
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": 222, "CUDA_ERROR_JIT_COMPILATION_DISABLED": 223,
        "CUDA_ERROR_OPERATING_SYSTEM": 304, "CUDA_ERROR_INVALID_HANDLE": 400, "CUDA_ERROR_ILLEGAL_STATE": 401,
        "CUDA_ERROR_NOT_FOUND": 500, "CUDA_ERROR_NOT_READY": 600,
        "CUDA_ERROR_ILLEGAL_ADDRESS": 700, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": 701,
        "CUDA_ERROR_LAUNCH_TIMEOUT": 702, "CUDA_ERROR_ASSERT": 710, "CUDA_ERROR_HARDWARE_STACK_ERROR": 714,
        "CUDA_ERROR_ILLEGAL_INSTRUCTION": 715, "CUDA_ERROR_MISALIGNED_ADDRESS": 716,
        "CUDA_ERROR_INVALID_ADDRESS_SPACE": 717, "CUDA_ERROR_INVALID_PC": 718, "CUDA_ERROR_LAUNCH_FAILED": 719,
        "CUDA_ERROR_CONTEXT_IS_DESTROYED": 709, "CUDA_ERROR_MPS_CLIENT_TERMINATED": 810,
        "CUDA_ERROR_NOT_PERMITTED": 800, "CUDA_ERROR_NOT_SUPPORTED": 801,
        "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE": 720, "CUDA_ERROR_INVALID_CLUSTER_SIZE": 912,
        "CUDA_ERROR_UNKNOWN": 999,
    },
)  # fmt: skip
CUjit_option = IntEnum(
    "CUjit_option",
    {
        "CU_JIT_INFO_LOG_BUFFER": 3, "CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES": 4, "CU_JIT_ERROR_LOG_BUFFER": 5,
        "CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES": 6,
    },
)  # fmt: skip
CUfunction_attribute = IntEnum(
    "CUfunction_attribute",
    {
        "CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK": 0, "CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES": 1,
        "CU_FUNC_ATTRIBUTE_NUM_REGS": 4, "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES": 8,
        "CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED": 14,
    },
)  # fmt: skip
CUlaunchAttributeID = IntEnum(
    "CUlaunchAttributeID",
    {
        "CU_LAUNCH_ATTRIBUTE_COOPERATIVE": 2, "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION": 4,
        "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION": 6,
    },
)  # fmt: skip
CUstream_flags = IntEnum("CUstream_flags", {"CU_STREAM_DEFAULT": 0})
CUevent_flags = IntEnum("CUevent_flags", {"CU_EVENT_DEFAULT": 0})
CUtensorMapDataType = IntEnum(
    "CUtensorMapDataType",
    {"CU_TENSOR_MAP_DATA_TYPE_UINT8": 0, "CU_TENSOR_MAP_DATA_TYPE_FLOAT16": 6, "CU_TENSOR_MAP_DATA_TYPE_FLOAT32": 7},
)
CUtensorMapInterleave = IntEnum("CUtensorMapInterleave", {"CU_TENSOR_MAP_INTERLEAVE_NONE": 0})
CUtensorMapSwizzle = IntEnum("CUtensorMapSwizzle", {"CU_TENSOR_MAP_SWIZZLE_NONE": 0, "CU_TENSOR_MAP_SWIZZLE_128B": 3})
CUtensorMapL2promotion = IntEnum("CUtensorMapL2promotion", {"CU_TENSOR_MAP_L2_PROMOTION_NONE": 0})
CUtensorMapFloatOOBfill = IntEnum(
    "CUtensorMapFloatOOBfill",
    {"CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE": 0, "CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA": 1},
)

#: What the fakes imitate of ``cuda.core.DeviceProperties``.
PROPERTIES = {
    "max_threads_per_block": 1024, "max_block_dim_x": 1024, "max_block_dim_y": 1024, "max_block_dim_z": 64,
    "max_grid_dim_x": 2**31 - 1, "max_grid_dim_y": 65535, "max_grid_dim_z": 65535,
    "max_shared_memory_per_block": 49152, "max_shared_memory_per_block_optin": 232448, "multiprocessor_count": 132,
    "memory_pools_supported": 0,
    "max_registers_per_block": 65536, "max_threads_per_multiprocessor": 2048, "max_blocks_per_multiprocessor": 32,
    "max_shared_memory_per_multiprocessor": 233472, "reserved_shared_memory_per_block": 1024,
}  # fmt: skip


ENCODE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, *(ctypes.c_void_p,) * 5, *(ctypes.c_int,) * 4
)


class CUDAError(Exception):
    """As ``cuda.core`` raises it."""


class CUdeviceptr:
    def __init__(self, address: int) -> None:
        assert type(address) is int
        self.address = address

    def __int__(self) -> int:
        return self.address


class CUlaunchConfig(SimpleNamespace):
    """Takes any field, as a mistyped one shows in a test that reads the right one."""


class CUlaunchAttribute:
    def __init__(self) -> None:
        self.id: Any = None
        self.value = SimpleNamespace(
            clusterDim=SimpleNamespace(x=0, y=0, z=0), cooperative=0, programmaticStreamSerializationAllowed=0
        )


class Handle:
    """A CUmodule, CUfunction, CUstream or CUevent."""

    def __init__(self, kind: str, of: str = "") -> None:
        self.kind = kind
        self.of = of
        self.alive = True


class FakeBindings:
    """``cuda.bindings.driver`` as far as it is called. ``failures`` says what a function's Nth call returns.

    A value is a CUresult for every call, a list one for each in turn, or an exception to raise.
    """

    def __init__(self) -> None:
        for public in (
            CUresult, CUjit_option, CUfunction_attribute, CUlaunchAttributeID, CUstream_flags, CUevent_flags,
            CUdeviceptr, CUlaunchConfig, CUlaunchAttribute, CUtensorMapDataType, CUtensorMapInterleave,
            CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill,
        ):  # fmt: skip
            setattr(self, public.__name__, public)
        #: Held, as C calls it.
        self._encode_for_c = ENCODE(self._encode)
        self._encoder = ctypes.cast(self._encode_for_c, ctypes.c_void_p).value or 0
        self.calls: list[str] = []
        self.failures: dict[str, Any] = {}
        self.cuda = 13000
        self.entries = {"k", "empty"}
        self.table: list[tuple[int, int]] = []
        self.function_attributes = {0: 1024, 1: 0, 4: 32}
        self.set_attributes: list[tuple[int, int]] = []
        self.memory: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self.variables: dict[str, int] = {}
        self.pooled: set[int] = set()
        self.pinned: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self.queue: list[tuple[int, int, int]] = []
        self.queued = self.done = 0
        self.recorded: dict[Handle, int] = {}
        self.images: list[bytes] = []
        self.configs: list[CUlaunchConfig] = []
        self.arguments: list[list[bytes]] = []
        self.maps: list[tuple[Any, ...]] = []
        self.handles: list[Handle] = []
        self.ctas_per_multiprocessor = 2
        self.log = ("", "")

    def _answer(self, name: str) -> CUresult:
        self.calls.append(name)
        failure = self.failures.get(name, 0)
        if isinstance(failure, list):
            failure = failure.pop(0) if failure else 0
        if isinstance(failure, Exception):
            raise failure
        return CUresult(failure)

    def _make(self, name: str, kind: str, of: str = "") -> tuple[CUresult, Handle | None]:
        status = self._answer(name)
        if status:
            return status, None
        self.handles.append(Handle(kind, of))
        return status, self.handles[-1]

    def _end(self, name: str, handle: Handle, kind: str) -> tuple[CUresult]:
        assert handle.kind == kind
        assert handle.alive, f"{name} twice"
        handle.alive = False
        return (self._answer(name),)

    def leaks(self) -> Counter[str]:
        """What was made and not let go of, by kind. Functions go with their module."""
        found = Counter(handle.kind for handle in self.handles if handle.alive and handle.kind != "function")
        if self.memory:
            found["memory"] = len(self.memory)
        return found

    def cuGetErrorString(self, status: CUresult) -> tuple[CUresult, bytes]:
        return CUresult(0), b"words of " + CUresult(status).name.encode()

    def cuDriverGetVersion(self) -> tuple[CUresult, int]:
        return self._answer("cuDriverGetVersion"), self.cuda

    def cuDeviceGet(self, index: int) -> tuple[CUresult, int]:
        return self._answer("cuDeviceGet"), index

    def cuDevicePrimaryCtxRetain(self, device: int) -> tuple[CUresult, Handle | None]:
        assert type(device) is int
        return self._make("cuDevicePrimaryCtxRetain", "context")

    def cuDevicePrimaryCtxRelease(self, device: int) -> tuple[CUresult]:
        assert type(device) is int
        context = next(handle for handle in self.handles if handle.kind == "context" and handle.alive)
        return self._end("cuDevicePrimaryCtxRelease", context, "context")

    def cuCtxSetCurrent(self, context: Handle) -> tuple[CUresult]:
        assert context.kind == "context"
        assert context.alive
        return (self._answer("cuCtxSetCurrent"),)

    def cuStreamCreate(self, flags: int) -> tuple[CUresult, Handle | None]:
        assert type(flags) is int
        return self._make("cuStreamCreate", "stream")

    def cuStreamDestroy(self, stream: Handle) -> tuple[CUresult]:
        return self._end("cuStreamDestroy", stream, "stream")

    def cuEventCreate(self, flags: int) -> tuple[CUresult, Handle | None]:
        assert type(flags) is int
        return self._make("cuEventCreate", "event")

    def cuEventDestroy(self, event: Handle) -> tuple[CUresult]:
        return self._end("cuEventDestroy", event, "event")

    def cuEventRecord(self, event: Handle, stream: Handle) -> tuple[CUresult]:
        assert (event.kind, stream.kind) == ("event", "stream")
        self.recorded[event] = self.queued
        return (self._answer("cuEventRecord"),)

    def cuEventQuery(self, event: Handle) -> tuple[CUresult]:
        assert event.kind == "event"
        return (self._answer("cuEventQuery"),)

    def cuEventElapsedTime(self, start: Handle, end: Handle) -> tuple[CUresult, float]:
        assert start is not end
        return self._answer("cuEventElapsedTime"), 1.5

    def cuMemGetInfo(self) -> tuple[CUresult, int, int]:
        return self._answer("cuMemGetInfo"), 1000, 2000

    def cuMemAlloc(self, nbytes: int) -> tuple[CUresult, CUdeviceptr | None]:
        status = self._answer("cuMemAlloc")
        if status or nbytes < 1:
            return status or CUresult(1), None
        address = (len(self.calls) << 40) + 256
        self.memory[address] = ctypes.create_string_buffer(b"\xcc" * nbytes, nbytes)
        return status, CUdeviceptr(address)

    def cuMemFree(self, pointer: CUdeviceptr) -> tuple[CUresult]:
        del self.memory[int(pointer)]
        return (self._answer("cuMemFree"),)

    def cuMemAllocAsync(self, nbytes: int, stream: Handle) -> tuple[CUresult, CUdeviceptr | None]:
        assert stream.kind == "stream"
        status = self._answer("cuMemAllocAsync")
        if status:
            return status, None
        made = self.cuMemAlloc(nbytes)
        self.calls.pop()
        self.pooled.add(int(made[1] or 0))
        return made

    def cuMemFreeAsync(self, pointer: CUdeviceptr, stream: Handle) -> tuple[CUresult]:
        assert stream.kind == "stream"
        self.pooled.remove(int(pointer))
        del self.memory[int(pointer)]
        return (self._answer("cuMemFreeAsync"),)

    def cuMemHostAlloc(self, nbytes: int, flags: int) -> tuple[CUresult, int | None]:
        assert flags == 0
        status = self._answer("cuMemHostAlloc")
        if status:
            return status, None
        block = ctypes.create_string_buffer(nbytes)
        self.pinned[ctypes.addressof(block)] = block
        return status, ctypes.addressof(block)

    def cuMemFreeHost(self, host: int) -> tuple[CUresult]:
        del self.pinned[host]
        return (self._answer("cuMemFreeHost"),)

    def cuMemcpyHtoDAsync(self, pointer: CUdeviceptr, host: int, nbytes: int, stream: Handle) -> tuple[CUresult]:
        """Done when an event or the stream is waited for, so that a block that is reused too soon shows."""
        assert stream.kind == "stream"
        assert host not in self.pinned or nbytes <= len(self.pinned[host])
        self.queue.append((self._host(pointer, nbytes), host, nbytes))
        self.queued += 1
        return (self._answer("cuMemcpyHtoDAsync"),)

    def cuMemcpyDtoHAsync(self, host: int, pointer: CUdeviceptr, nbytes: int, stream: Handle) -> tuple[CUresult]:
        assert stream.kind == "stream"
        assert host not in self.pinned or nbytes <= len(self.pinned[host])
        self.queue.append((host, self._host(pointer, nbytes), nbytes))
        self.queued += 1
        return (self._answer("cuMemcpyDtoHAsync"),)

    def cuEventSynchronize(self, event: Handle) -> tuple[CUresult]:
        """All copies up to the one that the event was recorded after are done, and none beyond it."""
        assert event.kind == "event"
        self._copy_until(self.recorded.get(event, 0))
        return (self._answer("cuEventSynchronize"),)

    def cuStreamSynchronize(self, stream: Handle) -> tuple[CUresult]:
        assert stream.kind == "stream"
        self._copy_until(self.queued)
        return (self._answer("cuStreamSynchronize"),)

    def _copy_until(self, count: int) -> None:
        while self.done < count:
            ctypes.memmove(*self.queue.pop(0))
            self.done += 1

    def _host(self, pointer: CUdeviceptr, nbytes: int) -> int:
        """Where device memory really lies; the range must be within one allocation."""
        address = int(pointer)
        start, block = next((s, b) for s, b in self.memory.items() if s <= address < s + len(b))
        assert address + nbytes <= start + len(block)
        return ctypes.addressof(block) + address - start

    def cuModuleLoadDataEx(
        self, image: bytes, count: int, options: list[CUjit_option], values: list[Any]
    ) -> tuple[CUresult, Handle | None]:
        assert image.endswith(b"\0") or image.startswith(b"\x7fELF")
        assert count == len(options) == len(values)
        given = dict(zip(options, values, strict=True))
        for buffer, size, text in ((3, 4, self.log[0]), (5, 6, self.log[1])):
            assert len(given[CUjit_option(buffer)]) == given[CUjit_option(size)]
            given[CUjit_option(buffer)][: len(text) + 1] = text.encode() + b"\0"
        self.images.append(image[:-1])
        return self._make("cuModuleLoadDataEx", "module")

    def cuModuleUnload(self, module: Handle) -> tuple[CUresult]:
        return self._end("cuModuleUnload", module, "module")

    def cuModuleGetFunction(self, module: Handle, name: bytes) -> tuple[CUresult, Handle | None]:
        assert module.kind == "module"
        assert module.alive
        if name.decode() not in self.entries:
            return CUresult(500), None
        return self._make("cuModuleGetFunction", "function", name.decode())

    def cuModuleGetGlobal(self, module: Handle, name: bytes) -> tuple[CUresult, CUdeviceptr | None, int | None]:
        assert module.kind == "module"
        status = self._answer("cuModuleGetGlobal")
        if status or name.decode() not in self.variables:
            return status or CUresult(500), None, None
        address = self.variables[name.decode()]
        return status, CUdeviceptr(address), len(self.memory[address])

    def cuFuncGetAttribute(self, attribute: CUfunction_attribute, function: Handle) -> tuple[CUresult, int]:
        assert function.kind == "function"
        return self._answer("cuFuncGetAttribute"), self.function_attributes[attribute]

    def cuFuncSetAttribute(self, function: Handle, attribute: CUfunction_attribute, value: int) -> tuple[CUresult]:
        assert function.kind == "function"
        self.set_attributes.append((int(attribute), value))
        return (self._answer("cuFuncSetAttribute"),)

    def cuFuncGetParamInfo(self, function: Handle, index: int) -> tuple[CUresult, int | None, int | None]:
        assert function.kind == "function"
        status = self._answer("cuFuncGetParamInfo")
        if status or index >= len(self.table):
            return status or CUresult(1), None, None
        return status, *self.table[index]

    def cuGetProcAddress(self, name: bytes, version: int, flags: int) -> tuple[CUresult, int, int]:
        assert (name, version, flags) == (b"cuTensorMapEncodeTiled", 12000, 0)
        return self._answer("cuGetProcAddress"), 0 if self.cuda < version else self._encoder, 0

    def _encode(
        self, map: int, dtype: int, rank: int, address: int, dims: int, strides: int, box: int, steps: int, *words: int
    ) -> int:
        """``cuTensorMapEncodeTiled``, which wants the map at a multiple of 64."""
        assert map % 64 == 0
        assert strides
        numbers = (
            (ctypes.c_uint64 * rank, dims), (ctypes.c_uint64 * (rank - 1), strides),
            (ctypes.c_uint32 * rank, box), (ctypes.c_uint32 * rank, steps),
        )  # fmt: skip
        self.maps.append((dtype, *(list(kind.from_address(at)) for kind, at in numbers), *words))
        opaque = (ctypes.c_uint64 * 16)(address, *range(1, 16))
        ctypes.memmove(map, opaque, 128)
        return int(self._answer("cuTensorMapEncodeTiled"))

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(
        self, function: Handle, threads: int, shared: int
    ) -> tuple[CUresult, int]:
        assert function.kind == "function"
        assert threads > 0 <= shared
        return self._answer("cuOccupancyMaxActiveBlocksPerMultiprocessor"), self.ctas_per_multiprocessor

    def cuLaunchKernelEx(self, config: CUlaunchConfig, function: Handle, pointers: int, extra: int) -> tuple[CUresult]:
        assert function.kind == "function"
        assert config.numAttrs == len(config.attrs)
        assert extra == 0
        array = (ctypes.c_void_p * max(len(self.table), 1)).from_address(pointers)
        self.configs.append(config)
        self.arguments.append([ctypes.string_at(array[i] or 0, size) for i, (_, size) in enumerate(self.table)])
        return (self._answer("cuLaunchKernelEx"),)

    def cuLaunchKernel(self, function: Handle, *given: Any) -> tuple[CUresult]:
        assert function.kind == "function"
        *sizes, shared, stream, arguments, extra = given
        assert (sizes, shared, stream.kind, arguments, extra) == ([1] * 6, 0, "stream", 0, 0)
        return (self._answer("cuLaunchKernel"),)


class FakeDevice:
    """``cuda.core.Device``."""

    def __init__(self, core: FakeCore, index: int) -> None:
        if index >= core.count:
            raise ValueError(f"device_id must be within [0, {core.count}), got {index}")
        self.core = core
        core.refuse()
        self.compute_capability = divmod(core.sm, 10)
        self.properties = SimpleNamespace(**core.properties)

    @property
    def name(self) -> str:
        self.core.refuse()
        return "Fake 100"


class FakeCore:
    """``cuda.core``."""

    def __init__(self, sm: int = 90, count: int = 1) -> None:
        self.sm = sm
        self.count = count
        self.properties = dict(PROPERTIES)
        self.refusal: BaseException | None = None

    def refuse(self) -> None:
        if self.refusal is not None:
            raise self.refusal

    def Device(self, index: int) -> FakeDevice:
        return FakeDevice(self, index)


class FakeCuda:
    """Both packages, and what a test looks at."""

    def __init__(self, sm: int = 90) -> None:
        self.core = FakeCore(sm)
        self.driver = FakeBindings()
        self.packages = Packages(self.core, self.driver, CUDAError)
