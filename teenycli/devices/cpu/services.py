"""What device code asks of the host: ``vprintf``, ``malloc``, ``free``, ``__assertfail`` (CUDA, "Formatted Output",
"Dynamic Global Memory Allocation", "Assertion").

Generated code calls back, a thread of the kernel at a time. An address that cannot be read is a fault like any other.

May import ``formats``, ``layout``, ``memory``.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from teenycli.devices.cpu.formats import Arguments, formatted
from teenycli.devices.cpu.layout import ID_SHIFT, LOCAL_ID, OFFSET_MASK, Context, Entry, FaultKind
from teenycli.devices.cpu.memory import AddressSpace

#: Bytes that ``malloc`` may have given out at a time: CUDA's default.
HEAP_BYTES = 8 << 20
#: Blocks of the heap that one launch may add.
HEAP_BLOCKS = 1 << 16
#: Longest string that is read, in bytes.
_STRING_LIMIT = 1 << 20

CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, *[ctypes.c_int64] * 4)


class Service(IntEnum):
    """What is asked for, by number."""

    PRINT = 0
    ALLOCATE = 1
    FREE = 2
    ASSERT = 3


class _FaultError(Exception):
    """A service that ends the kernel; ``address`` is what a message about it names."""

    def __init__(self, kind: FaultKind, address: int) -> None:
        self.kind = kind
        self.address = address


class Heap:
    """Blocks that kernels allocate. They outlive a launch, as on a GPU."""

    def __init__(self, space: AddressSpace) -> None:
        self.space = space
        self.used = 0

    def allocate(self, size: int, end: int) -> int | None:
        """The id of a new block; None where memory, or ids below ``end``, are exhausted."""
        if not 0 < size <= HEAP_BYTES - self.used:
            return None
        block = self.space.allocate_block(size, end)
        if block is None:
            return None
        self.used += size
        return block.number

    def free(self, address: int) -> int:
        """Free the block at ``address``; its id."""
        number = address >> ID_SHIFT
        buffer = self.space.buffers.get(number)
        if buffer is None or not buffer.is_heap or address & OFFSET_MASK:
            raise _FaultError(FaultKind.BAD_FREE, address)
        if buffer.data is None:
            raise _FaultError(FaultKind.DOUBLE_FREE, address)
        self.space.free(buffer)
        self.used -= buffer.nbytes
        return number


class Services:
    """The services of one launch. ``tables`` are the address tables of every resident CTA; ``failure`` is what the
    sink raised, and ``assertions`` the messages of assertions by place in the grid and thread."""

    def __init__(self, heap: Heap, output: Callable[[str], object]) -> None:
        self.heap = heap
        self.output = output
        self.tables: list[npt.NDArray[np.uint64]] = []
        self.failure: OSError | ValueError | None = None
        self.assertions: dict[tuple[int, ...], str] = {}
        self._lock = threading.Lock()
        self._actions = {
            Service.PRINT: self._print,
            Service.ALLOCATE: self._allocate,
            Service.FREE: self._free,
            Service.ASSERT: self._assert,
        }
        self.callback = CALLBACK(self._serve)

    def close(self) -> None:
        """Let go of the tables of addresses, which are large; the callback and this object hold each other."""
        self.tables.clear()

    def _serve(self, context: int, service: int, thread: int, *args: int) -> int:
        """The result of a call; after a fault its address, with the kind in the context's ``verdict``."""
        here = Context.from_address(context)
        given = [a & (1 << 64) - 1 for a in args]
        with self._lock:
            try:
                return _signed(self._actions[Service(service)](here, thread, given))
            except _FaultError as fault:
                here.verdict = int(fault.kind)
                return _signed(fault.address)
            except (OSError, ValueError) as failure:  # the sink is closed, or its encoding lacks a character
                self.failure = failure
                here.verdict = int(FaultKind.STOPPED)
                return 0

    # --- the services ----------------------------------------------------------------------------------------

    def _print(self, here: Context, thread: int, args: Sequence[int]) -> int:
        text, used = formatted(
            _string(here, thread, args[0]),
            Arguments(lambda at, size: _read(here, thread, args[1] + at, size)),
            lambda address: _string(here, thread, address),
        )
        self.output(text)
        return used

    def _allocate(self, _: Context, __: int, args: Sequence[int]) -> int:
        number = self.heap.allocate(args[0], len(self.tables[0]))
        if number is None:
            return 0
        self._share(number)
        return number << ID_SHIFT

    def _free(self, _: Context, __: int, args: Sequence[int]) -> int:
        if args[0]:
            self._share(self.heap.free(args[0]))
        return 0

    def _share(self, number: int) -> None:
        """Let every resident CTA see what has become of a block."""
        for table in self.tables:
            table[number] = self.heap.space.rows[number]

    def _assert(self, here: Context, thread: int, args: Sequence[int]) -> int:
        message, file, function = (
            _string(here, thread, a).decode(errors="replace") if a else "?" for a in (args[0], args[1], args[3])
        )
        self.assertions[(*here.cta, thread)] = f"{file}:{args[2]}: {function}: assertion '{message}' failed"
        raise _FaultError(FaultKind.ASSERT, 0)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _span(here: Context, thread: int, address: int) -> tuple[int, int]:
    """Host address of a device address, and how many bytes may be read there."""
    number, offset = address >> ID_SHIFT, address & OFFSET_MASK
    if number == LOCAL_ID:
        base, size = here.local + thread * here.local_size, here.local_size
    elif number < here.entries:
        row = Entry.from_address(here.table + number * ctypes.sizeof(Entry))
        base, size = row.base, row.size
    else:
        base = size = 0
    return base + offset, max(size - offset, 0)


def _read(here: Context, thread: int, address: int, size: int) -> bytes:
    host, room = _span(here, thread, address)
    if room < size:
        raise _FaultError(FaultKind.ACCESS, address)
    return ctypes.string_at(host, size)


def _string(here: Context, thread: int, address: int) -> bytes:
    """A string in device memory, which must end within its buffer."""
    host, room = _span(here, thread, address)
    found = ctypes.string_at(host, min(room, _STRING_LIMIT)) if room else b""
    end = found.find(b"\0")
    if end < 0 and len(found) < _STRING_LIMIT:
        raise _FaultError(FaultKind.ACCESS, address + len(found))
    return found[:end] if end >= 0 else found
