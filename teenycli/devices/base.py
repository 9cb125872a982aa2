"""What a device can do. ``cpu`` and ``cuda`` are the two implementations; tests run the same cases over both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from teenycli.arch import Limits
from teenycli.errors import Finding
from teenycli.launch.plan import Launch
from teenycli.ptx.model import Module

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]


class Kernel(Protocol):
    """An entry made ready to launch. ``compile_ms`` is what that took; ``cached`` whether it came from a cache."""

    @property
    def compile_ms(self) -> float: ...
    @property
    def cached(self) -> bool: ...
    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the device has to say about the kernel, short of refusing it."""
        ...


class DeviceBuffer(Protocol):
    """Device memory with a name for messages."""

    @property
    def name(self) -> str: ...
    @property
    def address(self) -> int: ...
    @property
    def nbytes(self) -> int: ...


class LaunchTime(Struct, frozen=True):
    """Time of one launch in milliseconds, compilation and copies apart."""

    ms: float


#: Runs a prepared launch to its end, as often as wanted. It takes a time-out in seconds, 0 for none. Raises TeenyError:
#: ids ``timeout``, ``out-of-bounds`` and the like for faults of the kernel (exit FAILED).
Run = Callable[[float], LaunchTime]


class Device(Protocol):
    """A place where kernels run. Call ``close`` when done."""

    @property
    def name(self) -> str:
        """``cpu`` or ``cuda:0``."""
        ...

    @property
    def description(self) -> str:
        """The hardware, for a person: ``NVIDIA H200, sm_90`` or ``AVX-512, 2 threads``."""
        ...

    @property
    def limits(self) -> Limits: ...

    def layout_sm(self, module: Module) -> int:
        """The architecture that parameters are laid out for when ``module`` is loaded here."""
        ...

    def load(self, module: Module, entry: str) -> Kernel:
        """Compile ``entry``. Raises TeenyError with exit UNSUPPORTED when this device cannot run it."""
        ...

    def set_variable(self, kernel: Kernel, name: str, data: Bytes) -> None:
        """Write ``data``, all its bytes, into the ``.global`` or ``.const`` variable ``name`` of the kernel's module.

        Nothing happens where the device has left the variable out, since no code uses it. All kernels of a module share
        its variables.
        """
        ...

    def reset_variables(self, module: Module) -> None:
        """Give the variables of ``module``, of which kernels have been loaded, what its text says that they hold."""
        ...

    def upload(self, name: str, data: Bytes, align: int = 256) -> DeviceBuffer:
        """Allocate a buffer of ``len(data)`` bytes at an address divisible by ``align`` and copy ``data`` into it."""
        ...

    def download(self, buffer: DeviceBuffer) -> Bytes:
        """A copy of the buffer's bytes."""
        ...

    def free(self, buffer: DeviceBuffer) -> None:
        """Give the buffer's memory back; it is of no use after."""
        ...

    def prepare(self, kernel: Kernel, launch: Launch, buffers: Mapping[str, DeviceBuffer]) -> Run:
        """Make one launch ready: what is left is to run it. ``buffers`` by the names that the launch's addresses use.

        They must outlive it. Raises TeenyError where this device can make no such launch (exit FAILED).
        """
        ...

    def close(self) -> None: ...
