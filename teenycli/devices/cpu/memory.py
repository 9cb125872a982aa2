"""Device memory: buffers on the host, and the table that maps device addresses to them.

May import ``layout``. Imports numpy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from teenycli.devices.cpu.layout import FIRST_BUFFER, ID_SHIFT, Entry

Bytes = npt.NDArray[np.uint8]
#: Every buffer begins at a host address divisible by this.
HOST_ALIGN = 256


def aligned_bytes(size: int, align: int = HOST_ALIGN) -> Bytes:
    """Zeroed host memory of ``size`` bytes at an address divisible by ``align``."""
    room = np.zeros(size + align, np.uint8)
    skip = -room.ctypes.data % align
    return room[skip : skip + size]


@dataclass(eq=False, slots=True)
class CpuBuffer:
    """A buffer. ``address`` is what kernels see; ``data`` is None once it is freed. A kernel's ``malloc`` made it when
    ``is_heap``."""

    name: str
    number: int
    nbytes: int
    data: Bytes | None
    is_heap: bool = False

    @property
    def address(self) -> int:
        return self.number << ID_SHIFT


class AddressSpace:
    """All buffers of a device. Ids are never used twice, so that a use after free is known as one."""

    def __init__(self) -> None:
        self.buffers: dict[int, CpuBuffer] = {}
        self.rows: npt.NDArray[np.uint64] = np.zeros((FIRST_BUFFER + 64, _COLUMNS), np.uint64)
        self.end = FIRST_BUFFER

    def allocate(self, name: str, data: Bytes, align: int) -> CpuBuffer:
        """A buffer with a copy of ``data``."""
        room = aligned_bytes(data.nbytes, max(align, HOST_ALIGN))
        room[:] = data.reshape(-1).view(np.uint8)
        buffer = CpuBuffer(name, self.end, data.nbytes, room)
        if self.end == len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
        self.rows[self.end] = (room.ctypes.data, data.nbytes, data.nbytes, 0)
        self.buffers[self.end] = buffer
        self.end += 1
        return buffer

    def free(self, buffer: CpuBuffer) -> None:
        """Give the memory back; the id stays known as freed."""
        buffer.data = None
        self.rows[buffer.number] = 0

    def renew(self, number: int, size: int) -> None:
        """Use the id of a freed buffer once more: for blocks of a kernel's heap, when it has run out of ids."""
        buffer = self.buffers[number]
        buffer.data, buffer.nbytes = aligned_bytes(size), size
        self.rows[number] = (buffer.data.ctypes.data, size, size, 0)

    def table(self, spare: int = 0) -> npt.NDArray[np.uint64]:
        """A copy of the table, for the windows of one CTA to be put in, with ``spare`` empty rows."""
        table = np.zeros((self.end + spare, _COLUMNS), np.uint64)
        table[: self.end] = self.rows[: self.end]
        return table


_COLUMNS = len(Entry._fields_)
