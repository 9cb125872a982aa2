"""The stand-in driver's engine: reads PTX with our own parser, and runs launches on the CPU device.

Device memory is the CPU device's: an allocation's address is what a kernel there takes, so addresses within arguments
and buffers are good as they are. Variables of a module have one memory for all its kernels, but the address that the
host copies to is not the one that a kernel sees.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from teenycli.arch import param_base, parse_target
from teenycli.devices.base import DeviceBuffer
from teenycli.devices.cpu import CpuDevice
from teenycli.devices.cpu import variables as cpu_variables
from teenycli.devices.cpu.hall import CpuKernel
from teenycli.devices.cpu.memory import Bytes, CpuBuffer
from teenycli.errors import TeenyError
from teenycli.exits import Exit
from teenycli.launch.plan import Argument, Field, Launch
from teenycli.ptx import Function, Module, Source, outline, parse_all
from teenycli.ptx.layout import layout
from teenycli.ptx.model import Space
from teenycli.ptx.search import shared_static
from teenycli.releases import driver_takes
from tests.driver.standin import Standin

_U32, _U64 = ctypes.c_uint32, ctypes.c_uint64
_OUT_OF_MEMORY, _NO_BINARY, _INVALID_PTX, _NEWER_PTX, _NOT_SUPPORTED, _UNKNOWN = 2, 209, 218, 222, 801, 999
#: What a fault of the CPU device is on a GPU; a kernel that it does not name failed for a reason unspecified.
_FAULTS = {
    "null-pointer": 700, "out-of-bounds": 700, "use-after-free": 700, "read-only": 700, "misaligned": 716,
    "assertion": 710, "stack-overflow": 714, "recursion": 714, "bad-call": 718,
}  # fmt: skip
_LAUNCH_FAILED = 719
#: Kernels that on a GPU would run for ever.
_ENDLESS = ("timeout", "deadlock")
_ENDLESS_STATUS = -1
#: Addresses of variables, for the host: above those of all allocations.
_FIRST_VARIABLE, _STEP = 1 << 60, 1 << 40


class Geometry(ctypes.Structure):
    """``struct geometry`` of standin.h."""

    _fields_ = (
        ("grid", _U32 * 3),
        ("block", _U32 * 3),
        ("cluster", _U32 * 3),
        ("shared", _U32),
        ("cooperative", _U32),
    )


class Description(ctypes.Structure):
    """``struct description`` of standin.h."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("params", _U32),
        ("offsets", ctypes.POINTER(_U32)),
        ("sizes", ctypes.POINTER(_U32)),
        ("reqntid", _U32 * 3),
        ("max_threads", _U32),
        ("static_shared", _U32),
        ("registers", _U32),
        ("cluster", _U32 * 3),
        ("max_rank", _U32),
        ("counts_clusters", _U32),
        ("ptx_version", _U32),
    )


_LOAD = ctypes.CFUNCTYPE(
    ctypes.c_int, _U64, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t
)
_UNLOAD = ctypes.CFUNCTYPE(None, _U64)
_PREPARE = ctypes.CFUNCTYPE(None, _U64, ctypes.c_char_p)
_ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_size_t, ctypes.POINTER(_U64), ctypes.POINTER(_U64))
_RELEASE = ctypes.CFUNCTYPE(None, _U64)
_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int, _U64, ctypes.c_char_p, ctypes.POINTER(Geometry), ctypes.c_void_p, ctypes.c_size_t
)


_BRING_OUT = ctypes.CFUNCTYPE(None)


class Callbacks(ctypes.Structure):
    """``struct engine`` of standin.h."""

    _fields_ = (
        ("load", _LOAD),
        ("unload", _UNLOAD),
        ("prepare", _PREPARE),
        ("allocate", _ALLOCATE),
        ("release", _RELEASE),
        ("launch", _LAUNCH),
        ("bring_out", _BRING_OUT),
    )


@dataclass(slots=True)
class Loaded:
    """A module that the driver was given for a GPU of architecture ``sm``: kernels by name once they were launched,
    variables' memory by name."""

    module: Module
    sm: int
    kernels: dict[str, CpuKernel] = field(default_factory=dict)
    variables: dict[str, Bytes] = field(default_factory=dict)


class Engine:
    """What the stand-in calls. ``start`` registers it; it must live as long as the library is used."""

    def __init__(self, standin: Standin) -> None:
        self.standin = standin
        self.patience = float(os.environ.get("STANDIN_PATIENCE", "20"))
        self.loaded: dict[int, Loaded] = {}
        self._buffers: dict[int, DeviceBuffer] = {}
        self._device: CpuDevice | None = None
        #: What kernels have printed, and which assertions they failed, since it was brought out.
        self._printed: list[str] = []
        self._failed: list[str] = []
        self._variable_addresses = itertools.count(_FIRST_VARIABLE, _STEP)
        self._callbacks = Callbacks(
            _LOAD(_guarded(self._load)),
            _UNLOAD(_guarded(self._unload)),
            _PREPARE(_guarded(self._prepare)),
            _ALLOCATE(_guarded(self._allocate)),
            _RELEASE(_guarded(self._release)),
            _LAUNCH(_guarded(self._launch)),
            _BRING_OUT(_guarded(self._bring_out)),
        )

    def start(self) -> None:
        self.standin.library.standin_engine(ctypes.byref(self._callbacks))

    @property
    def device(self) -> CpuDevice:
        """The CPU device, made when it is needed: a process may fork before."""
        if self._device is None:
            self._device = CpuDevice(output=self._printed.append)
        return self._device

    def _bring_out(self) -> None:
        """What was printed to the process's standard output, through C's buffer of it and past Python's: the worst that
        a driver may do; assertions to its standard error."""
        text, failed = "".join(self._printed), "".join(self._failed)
        self._printed.clear()
        self._failed.clear()
        if text:
            ctypes.CDLL(None).printf(b"%s", text.encode())
        if failed:
            os.write(2, failed.encode())

    # --- memory --------------------------------------------------------------------------------------------------

    def _allocate(self, nbytes: int, address: Any, host: Any) -> int:
        try:
            buffer = self.device.upload("device memory", np.zeros(nbytes, np.uint8))
        except MemoryError:
            return _OUT_OF_MEMORY
        assert isinstance(buffer, CpuBuffer)
        assert buffer.data is not None
        self._buffers[buffer.address] = buffer
        address[0], host[0] = buffer.address, buffer.data.ctypes.data
        return 0

    def _release(self, address: int) -> None:
        self.device.free(self._buffers.pop(address))

    # --- code ----------------------------------------------------------------------------------------------------

    def _load(self, code: int, text: int, size: int, sm: int, cuda: int, log: int, room: int) -> int:
        def complain(words: str) -> None:
            raw = words.encode()[: room - 1] + b"\0"
            ctypes.memmove(log, raw, len(raw))

        try:
            module = outline(Source("module", ctypes.string_at(text, size).decode()))
            if not driver_takes(module.version, (cuda // 1000, cuda % 1000 // 10)):
                complain("ptxas fatal   : Unsupported .version {}.{}".format(*module.version))
                return _NEWER_PTX
            if not runs_on(module.target, sm):
                return _NO_BINARY
            parse_all(module)
        except TeenyError as error:
            line = error.finding.where.line if error.finding.where else 0
            complain(f"ptxas application ptx input, line {line}; error   : {error}")
            return _INVALID_PTX
        self.loaded[code] = Loaded(module, sm)
        self._define_variables(code)
        return next((status for entry in module.entries if (status := self._define(code, module, entry, sm))), 0)

    def _define(self, code: int, module: Module, entry: Function, sm: int) -> int:
        places, rules, none = bank(entry, sm), entry.directives, (0, 0, 0)
        most = min(1024, int(np.prod(rules.maxntid or rules.reqntid or (1024,))))
        numbers = _U32 * max(len(places), 1)
        described = Description(
            name=entry.name.encode(), params=len(places), offsets=numbers(*(offset for offset, _ in places)),
            sizes=numbers(*(size for _, size in places)), reqntid=rules.reqntid or none, max_threads=most,
            static_shared=shared_static(module, entry), registers=32, cluster=rules.reqnctapercluster or none,
            max_rank=rules.maxclusterrank or 0, counts_clusters=rules.blocksareclusters,
            ptx_version=module.version[0] * 10 + module.version[1],
        )  # fmt: skip
        return int(self.standin.library.standin_define(_U64(code), ctypes.byref(described)))

    def _define_variables(self, code: int) -> None:
        loaded = self.loaded[code]
        module = loaded.module
        known = [v for v in module.variables if v.space in (Space.GLOBAL, Space.CONST)]
        named = [variable for variable in known if not cpu_variables.has_symbols(variable.init)]
        made = cpu_variables.allocate(module, {v.name: number for number, v in enumerate(named)}, {})
        for number, variable in enumerate(named):
            memory = loaded.variables[variable.name] = made[number][1]
            self.standin.library.standin_define_global(
                _U64(code), variable.name.encode(), _U64(next(self._variable_addresses)), _U64(memory.ctypes.data),
                _U64(memory.nbytes),
            )  # fmt: skip

    def _unload(self, code: int) -> None:
        self.loaded.pop(code, None)

    def _prepare(self, code: int, name: bytes) -> None:
        """Compile now, as a driver does, so that a launch is not timed with it. What is refused, a launch will say."""
        with suppress(TeenyError):
            self._kernel(self.loaded[code], name.decode())

    def _kernel(self, loaded: Loaded, name: str) -> CpuKernel:
        if name not in loaded.kernels:
            kernel = self.device.load(loaded.module, name)
            assert isinstance(kernel, CpuKernel)
            for number, (region, _) in kernel.variables.items():
                shared = loaded.variables.get(region.name.removeprefix("variable '").removesuffix("'"))
                if shared is not None:
                    kernel.variables[number] = region, shared
            loaded.kernels[name] = kernel
        return loaded.kernels[name]

    # --- launches ------------------------------------------------------------------------------------------------

    def _launch(self, code: int, name: bytes, geometry: Any, params: int | None, size: int) -> int:
        """A CUresult; of a fault that shows after the call, in the upper half."""
        loaded, entry = self.loaded[code], name.decode()
        raw = ctypes.string_at(params, size) if params else b""
        try:
            kernel = self._kernel(loaded, entry)
            self.device.prepare(kernel, self._plan(loaded, entry, geometry[0], raw), {})(self.patience)
        except TeenyError as error:
            if error.exit is Exit.UNSUPPORTED:
                print(f"stand-in driver: {error}", file=sys.stderr)
                return _NOT_SUPPORTED
            if error.finding.id in _ENDLESS:
                return _ENDLESS_STATUS
            if error.finding.id == "assertion":
                self._failed.append(f"{error}\n")
            return _FAULTS.get(error.finding.id, _LAUNCH_FAILED) << 16
        return 0

    def _plan(self, loaded: Loaded, name: str, geometry: Geometry, raw: bytes) -> Launch:
        """The launch for the CPU device, which lays parameters out for the text's own target."""
        entry = next(entry for entry in loaded.module.entries if entry.name == name)
        slots = layout(entry, self.device.layout_sm(loaded.module))
        arguments = tuple(
            Argument(at, slot.param.name, "bytes", size, (Field("bytes", raw[start : start + size]),), slot.offset)
            for at, (slot, (start, size)) in enumerate(zip(slots, bank(entry, loaded.sm), strict=True))
        )
        return Launch(
            "op", 0, name, _triple(geometry.grid), _triple(geometry.block), arguments, _triple(geometry.cluster),
            geometry.shared, bool(geometry.cooperative),
        )  # fmt: skip


class Recorder(Engine):
    """An engine that runs nothing: ``launches`` has the name, the geometry and the parameters' bytes of each."""

    def __init__(self, standin: Standin) -> None:
        super().__init__(standin)
        self.launches: list[tuple[str, Geometry, bytes]] = []

    def _prepare(self, code: int, name: bytes) -> None:
        pass

    def _launch(self, code: int, name: bytes, geometry: Any, params: int | None, size: int) -> int:
        assert code in self.loaded
        copied = Geometry.from_buffer_copy(geometry[0])
        self.launches.append((name.decode(), copied, ctypes.string_at(params, size) if params else b""))
        return 0


def bank(entry: Function, sm: int) -> list[tuple[int, int]]:
    """Offset and size of each parameter of ``entry`` within the constant bank of a GPU (docs/layout.md)."""
    base = at = param_base(sm) or 0
    places = []
    for param in entry.params:
        at += -at % max(param.align, 1)
        places.append((at - base, param.size))
        at += param.size
    return places


def runs_on(target: str, sm: int) -> bool:
    """Whether the JIT makes code for a GPU of architecture ``sm`` of a text with this ``.target``."""
    wanted = parse_target(target)
    if wanted.suffix == "a":
        return wanted.sm == sm
    return wanted.sm <= sm and (wanted.suffix != "f" or wanted.sm // 10 == sm // 10)


def start(standin: Standin) -> Engine:
    """An engine for a loaded stand-in, registered."""
    engine = Engine(standin)
    engine.start()
    return engine


def _triple(of: Any) -> tuple[int, int, int]:
    x, y, z = of
    return x, y, z


def _guarded(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """``function`` for C to call, which knows no exceptions: one is shown, and the call fails."""

    def call(*arguments: Any) -> int | None:
        try:
            return function(*arguments)
        except Exception:
            traceback.print_exc()
            return _UNKNOWN

    return call
