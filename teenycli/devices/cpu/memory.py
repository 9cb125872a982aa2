"""Device memory: buffers on the host, and the table that maps device addresses to them.

May import ``layout``. Imports numpy.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from teenycli.devices.cpu.layout import FIRST_BUFFER, ID_SHIFT, Entry

Bytes = npt.NDArray[np.uint8]
#: Every buffer begins at a host address divisible by this.
HOST_ALIGN = 256


def aligned_bytes(size: int, align: int = HOST_ALIGN) -> Bytes:
    """Zeroed host memory of ``size`` bytes at an address divisible by ``align``."""
    room = np.zeros(size + align, np.uint8)
    skip = -room.ctypes.data % align
    return room[skip : skip + size]


class CpuBuffer(Struct, eq=False):
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


#: Ids of freed buffers that are kept from use, so that a use after free is known as one.
QUARANTINE = 4096


class AddressSpace:
    """All buffers of a device. The id of a freed one is used again only when many others have been freed since."""

    def __init__(self) -> None:
        self.buffers: dict[int, CpuBuffer] = {}
        self.rows: npt.NDArray[np.uint64] = np.zeros((FIRST_BUFFER + 64, _COLUMNS), np.uint64)
        self.end = FIRST_BUFFER
        self._freed: deque[int] = deque()

    def allocate(self, name: str, data: Bytes, align: int) -> CpuBuffer:
        """A buffer with a copy of ``data``."""
        room = aligned_bytes(data.nbytes, max(align, HOST_ALIGN))
        room[:] = data.reshape(-1).view(np.uint8)
        number = self._number()
        assert number is not None
        return self._add(CpuBuffer(name, number, data.nbytes, room))

    def allocate_block(self, size: int, end: int) -> CpuBuffer | None:
        """A block of a kernel's heap with ``size`` bytes and an id below ``end``; None where there is no such id."""
        number = self._number(end)
        if number is None:
            return None
        return self._add(CpuBuffer("malloc", number, size, aligned_bytes(size), is_heap=True))

    def _number(self, end: int | None = None) -> int | None:
        """An id that is free, new ones first."""
        is_full = end is not None and self.end >= end
        if self._freed and (is_full or len(self._freed) > QUARANTINE):
            return self._freed.popleft()
        if is_full:
            return None
        if self.end == len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
        self.end += 1
        return self.end - 1

    def _add(self, buffer: CpuBuffer) -> CpuBuffer:
        assert buffer.data is not None
        self.buffers[buffer.number] = buffer
        self.rows[buffer.number] = (buffer.data.ctypes.data, buffer.nbytes, buffer.nbytes, 0)
        return buffer

    def free(self, buffer: CpuBuffer) -> None:
        """Give the memory back; the id stays known as freed. Nothing is done for a buffer that is freed already."""
        if buffer.data is None:
            return
        buffer.data = None
        self.rows[buffer.number] = 0
        self._freed.append(buffer.number)

    def table(self, spare: int = 0) -> npt.NDArray[np.uint64]:
        """A copy of the table, for the windows of one CTA to be put in, with ``spare`` empty rows."""
        table = np.zeros((self.end + spare, _COLUMNS), np.uint64)
        table[: self.end] = self.rows[: self.end]
        return table


_COLUMNS = len(Entry._fields_)
