"""Is there an NVIDIA GPU, and which? Asked of the driver's library itself, before any CUDA package is imported.

A driver may hang (a GPU that fell off the bus, a wedged module), so the questions are asked on a daemon thread that is
left behind when no answer comes in time. Nothing here makes a context on a GPU.

May import ``errors``, ``exits``, and of its own house ``gpu``.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from teenycli.devices.cuda.gpu import Gpu
from teenycli.errors import TeenyError
from teenycli.exits import Exit, leave_at_once

#: Seconds for an answer where no sign of a GPU is there but the library; where GPUs may have to be woken, which takes
#: seconds for each; and where a GPU was asked for.
QUICK, PATIENT, ASKED = 0.25, 20.0, 60.0

_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
#: What the driver's kernel half leaves in /dev: on Linux, on a Jetson, in WSL.
_NODES = ("/dev/nvidiactl", "/dev/nvhost-gpu", "/dev/dxg")
#: Where it tells its version, before the first process has made it leave anything in /dev.
_VERSION = Path("/proc/driver/nvidia/version")
#: Has each launch wait for its end within the driver, where no time-out and no interrupt would reach it.
_BLOCKING = "CUDA_LAUNCH_BLOCKING"
_NO_DEVICE, _INVALID_DEVICE = 100, 101
_MAJOR, _MINOR = 75, 76  # CUdevice_attribute of the compute capability

#: Why cuInit fails, by CUresult: words that follow "the NVIDIA driver is there, but", and the cure.
_INIT_FAILURES: Mapping[int, tuple[str, str | None]] = {
    34: ("its library is a stub for linking, not the driver", "take the stub off LD_LIBRARY_PATH"),
    46: ("the GPU is taken", "its compute mode is exclusive: see nvidia-smi"),
    304: ("the operating system refused it", None),
    802: ("the system is not ready", "start nvidia-fabricmanager"),
    803: ("its kernel module is of another version than its library", "reboot, or reload the module"),
    804: ("this GPU does not support the compatibility library", "remove cuda-compat, or update the driver"),
    999: ("it failed for a reason it does not name", "see nvidia-smi; load the module nvidia_uvm"),
}  # fmt: skip


class Survey(Struct, frozen=True):
    """The GPUs that the driver shows, in its order; or why there are none, as the end of a sentence, and the cure.

    ``note`` is what was done to the environment.
    """

    gpus: tuple[Gpu, ...] = ()
    problem: str | None = None
    hint: str | None = None
    note: str | None = None

    def error(self) -> TeenyError:
        """``no-device``: a survey without GPUs, as an error."""
        return TeenyError("no-device", f"no GPU to run on: {self.problem}", hint=self.hint, exit=Exit.NO_DEVICE)


class _RefusalError(Exception):
    """A call of the driver's library that failed."""

    def __init__(self, call: str, code: int) -> None:
        super().__init__(call, code)
        self.call = call
        self.code = code


class _Answer(Struct):
    survey: Survey | None = None
    arrived: threading.Event = field(default_factory=threading.Event)


def usual_patience() -> float:
    """QUICK where nothing but a library hints at a GPU, PATIENT where the driver's kernel half is there.

    The first process to use a GPU may have to wait for seconds until it wakes.
    """
    may_be_there = sys.platform == "win32" or any(Path(node).exists() for node in (*_NODES, _VERSION))
    return PATIENT if may_be_there else QUICK


def survey(patience: float | None = None, library: str = _LIBRARY) -> Survey:
    """Ask the driver for its GPUs, for ``patience`` seconds at most; None for the usual."""
    if sys.platform == "darwin":
        return Survey(problem="macOS has no NVIDIA driver")
    patience = usual_patience() if patience is None else patience
    answer = _Answer()

    def work() -> None:
        try:
            answer.survey = _ask(library)
        finally:
            answer.arrived.set()

    threading.Thread(target=work, name="cuda-probe", daemon=True).start()
    if not answer.arrived.wait(patience) or answer.survey is None:
        leave_at_once()  # it may be anywhere within the driver
        problem = f"the NVIDIA driver has not answered within {patience:g} s"
        return Survey(problem=problem, hint="see whether nvidia-smi answers")
    return answer.survey


def _ask(library: str) -> Survey:
    is_blocking = os.environ.pop(_BLOCKING, "0") != "0"  # the driver looks at it once
    try:
        cuda = _Library(library)
        cuda.call("cuInit", 0)
        number = cuda.number("cuDriverGetVersion")
        version = number // 1000, number % 1000 // 10
        gpus = tuple(cuda.gpu(index, version) for index in range(cuda.number("cuDeviceGetCount")))
    except OSError as error:
        return Survey(problem=f"there is no NVIDIA driver ({error})")
    except AttributeError as error:
        return Survey(problem=f"{library} is no NVIDIA driver ({error})")
    except _RefusalError as refusal:
        return explain(refusal.call, refusal.code, os.environ)
    if not gpus:
        return explain("cuDeviceGetCount", _NO_DEVICE, os.environ)
    note = f"{_BLOCKING} is left out, since no time-out could end a launch under it" if is_blocking else None
    return Survey(gpus, note=note)


def explain(call: str, code: int, environ: Mapping[str, str], nodes: Mapping[str, bool] | None = None) -> Survey:
    """Why the driver's library is there and shows no GPU.

    From the CUresult ``code`` of ``call``, the environment, and the device files: each that exists, with whether this
    process may open it (None: look).
    """
    if nodes is None:
        nodes = {node: os.access(node, os.R_OK | os.W_OK) for node in (*_NODES, *_nodes_of_gpus())}
        nodes = {node: may_open for node, may_open in nodes.items() if Path(node).exists()}
    closed = [node for node, may_open in nodes.items() if not may_open]
    if closed:
        hint = f"`ls -l {closed[0]}` shows the group that may"
        return Survey(problem=f"the NVIDIA driver is there, but no permission to open {closed[0]}", hint=hint)
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if code in (_NO_DEVICE, _INVALID_DEVICE) and visible is not None:
        hint = "unset it, or have it name a GPU that is there"
        return Survey(problem=f"CUDA_VISIBLE_DEVICES is '{visible}', which hides every GPU", hint=hint)
    if code == _NO_DEVICE:
        listed = "nvidia-smi -L lists the GPUs; one in MIG mode shows none of itself before an instance is made"
        hint = listed if nodes or sys.platform == "win32" else "give the container the GPUs (--gpus all)"
        return Survey(problem="the NVIDIA driver is there, but no GPU", hint=hint)
    words, cure = _INIT_FAILURES.get(code, (f"{call} fails", None))
    return Survey(problem=f"the NVIDIA driver is there, but {words} (CUresult {code})", hint=cure)


def _nodes_of_gpus() -> list[str]:
    """Device files that a GPU takes beside those of the driver: without one of them the driver sees none."""
    if not _NODES or sys.platform == "win32":
        return []
    return [*sorted(map(str, Path("/dev").glob("nvidia[0-9]*"))), "/dev/nvidia-uvm"]


class _Library:
    """The driver's library through ctypes: the few functions that make no context."""

    def __init__(self, name: str) -> None:
        self._library = ctypes.CDLL(name)
        pointer = ctypes.POINTER(ctypes.c_int)
        signatures: dict[str, tuple[type[Any], ...]] = {
            "cuInit": (ctypes.c_uint,),
            "cuDriverGetVersion": (pointer,),
            "cuDeviceGetCount": (pointer,),
            "cuDeviceGet": (pointer, ctypes.c_int),
            "cuDeviceGetName": (ctypes.c_char_p, ctypes.c_int, ctypes.c_int),
            "cuDeviceGetAttribute": (pointer, ctypes.c_int, ctypes.c_int),
            "cuDeviceTotalMem_v2": (ctypes.POINTER(ctypes.c_size_t), ctypes.c_int),
        }
        self._functions = {}
        for function, types in signatures.items():
            found = self._library[function]
            found.argtypes, found.restype = types, ctypes.c_int
            self._functions[function] = found

    def call(self, name: str, *arguments: object) -> None:
        code = self._functions[name](*arguments)
        if code:
            raise _RefusalError(name.removesuffix("_v2"), code)

    def number(self, name: str, *arguments: object) -> int:
        """What a function writes into its first argument, an int."""
        result = ctypes.c_int()
        self.call(name, ctypes.byref(result), *arguments)
        return result.value

    def gpu(self, index: int, cuda: tuple[int, int]) -> Gpu:
        device = self.number("cuDeviceGet", index)
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, len(name), device)
        major, minor = (self.number("cuDeviceGetAttribute", attribute, device) for attribute in (_MAJOR, _MINOR))
        memory = ctypes.c_size_t()
        self.call("cuDeviceTotalMem_v2", ctypes.byref(memory), device)
        return Gpu(f"cuda:{index}", name.value.decode("utf-8", "replace"), major * 10 + minor, cuda, memory.value)


_KERNEL_MODULE = re.compile(r"\s(\d+\.\d+(?:\.\d+)*)\s")


def kernel_module_version(path: Path = _VERSION) -> str | None:
    """The driver's own version, such as ``580.95.05``; None where the system does not say (WSL, Windows)."""
    try:
        match = _KERNEL_MODULE.search(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return match[1] if match else None
