"""Host memory that the driver reads and writes: aligned bytes, arguments, lists of numbers. Imports nothing of ours."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

#: Where arguments and tensor maps start, a multiple of this: more than any parameter's alignment.
_ALIGN = 128


class Aligned:
    """``size`` bytes at ``start``, a multiple of 128, as long as this object lives."""

    def __init__(self, size: int, content: bytes = b"") -> None:
        self._memory = ctypes.create_string_buffer(size + _ALIGN)
        self._size = size
        self.start = ctypes.addressof(self._memory)
        self.start += -self.start % _ALIGN
        ctypes.memmove(self.start, content, len(content))

    def read(self) -> bytes:
        return ctypes.string_at(self.start, self._size)


class Arguments:
    """A kernel's arguments, each aligned, and the array of pointers to them that the driver reads."""

    def __init__(self, values: Sequence[bytes]) -> None:
        self._values = [Aligned(len(value), value) for value in values]
        self._array = (ctypes.c_void_p * max(len(values), 1))(*(value.start for value in self._values))

    @property
    def pointers(self) -> int:
        """The address of the array; valid as long as this object lives."""
        return ctypes.addressof(self._array)


def fastest_first(type: Any, values: Sequence[int]) -> ctypes.Array[Any]:
    """An array of a ctypes ``type``, the last dimension's number first."""
    return (type * len(values))(*reversed(values))  # type: ignore[no-any-return]
