"""Large copies between the host and the GPU, in chunks through two blocks of pinned memory: while one is copied by the
GPU, the other is filled or emptied.

The driver stages a pageable copy itself; doing it here lets a copy be watched, and broken off between two chunks.

May import, of its own house, ``driver``; and ``devices.releases``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from teenycli.devices.cuda.driver import Driver, DriverError
from teenycli.devices.releases import Releases

#: Bytes of each block; and of the least copy that goes through them.
CHUNK, LARGE = 16 << 20, 32 << 20

#: Called with what is copied, how many bytes have been, and how many will be.
Progress = Callable[[str, int, int], object]


class _Block(Struct, frozen=True):
    """Pinned memory at ``host``, and the event after the last copy that used it."""

    host: int
    event: Any


class Staging:
    """The two blocks, made at the first large copy and kept until ``close``."""

    def __init__(self, driver: Driver, progress: Progress | None = None) -> None:
        self._driver = driver
        self._progress = progress
        self._held = Releases()
        self._blocks: list[_Block] = []
        self._is_refused = False

    def copy_in(self, what: str, address: int, host: int, nbytes: int) -> None:
        """Copy ``nbytes`` at ``host`` to the device's ``address``; they have arrived when this returns.

        Raises DriverError; pinned memory that cannot be had is done without.
        """
        if not self._is_ready(nbytes):
            self._driver.copy_in(address, host, nbytes)
            return
        for k, (at, size) in enumerate(_chunks(nbytes)):
            block = self._blocks[k % 2]
            if k >= 2:
                self._driver.wait(block.event)
            ctypes.memmove(block.host, host + at, size)
            self._driver.copy_in_later(address + at, block.host, size)
            self._driver.record(block.event)
            self._tell(what, at, nbytes)
        for block in self._blocks:
            self._driver.wait(block.event)
        self._tell(what, nbytes, nbytes)

    def copy_out(self, what: str, host: int, address: int, nbytes: int) -> None:
        """Copy ``nbytes`` at the device's ``address`` to ``host``. Raises as ``copy_in`` does."""
        if not self._is_ready(nbytes):
            self._driver.copy_out(host, address, nbytes)
            return
        pending: tuple[_Block, int, int] | None = None
        for k, (at, size) in enumerate(_chunks(nbytes)):
            block = self._blocks[k % 2]
            self._driver.copy_out_later(block.host, address + at, size)
            self._driver.record(block.event)
            self._arrive(pending, host)
            pending = block, at, size
            self._tell(what, at, nbytes)
        self._arrive(pending, host)
        self._tell(what, nbytes, nbytes)

    def _arrive(self, pending: tuple[_Block, int, int] | None, host: int) -> None:
        if pending is not None:
            block, at, size = pending
            self._driver.wait(block.event)
            ctypes.memmove(host + at, block.host, size)

    def _tell(self, what: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(what, done, total)

    def _is_ready(self, nbytes: int) -> bool:
        """Whether the copy is large and the blocks are there. Where the system has no memory to pin, none is asked for
        again."""
        if nbytes < LARGE or self._is_refused:
            return False
        try:
            while len(self._blocks) < 2:
                with Releases() as held:
                    host = self._driver.pin(CHUNK)
                    held.later(self._driver.unpin, host)
                    block = _Block(host, self._driver.event())
                    held.later(self._driver.destroy_event, block.event)
                    self._held.push(held.pop_all())
                self._blocks.append(block)
        except DriverError as failure:
            if failure.code not in _NO_MEMORY_TO_PIN:
                raise
            self._is_refused = True
        return not self._is_refused

    def close(self) -> None:
        """Let the blocks go."""
        self._blocks.clear()
        self._held.close()


#: CUDA_ERROR_OUT_OF_MEMORY, OPERATING_SYSTEM, NOT_PERMITTED, NOT_SUPPORTED.
_NO_MEMORY_TO_PIN = (2, 304, 800, 801)


def _chunks(nbytes: int) -> Iterator[tuple[int, int]]:
    for at in range(0, nbytes, CHUNK):
        yield at, min(CHUNK, nbytes - at)
