"""What the launches of a plan touch: the elements of each buffer that are read and written, and accesses that miss.

``Trace.touch`` is what a walk tells of one instruction. May import ``footprint.arena``, ``footprint.lanes``,
``launch.plan``, ``ptx.code`` and numpy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from teenycli.footprint.arena import FIRST_BUFFER, HALF, SHARED, SHIFT, Arena
from teenycli.footprint.lanes import Array
from teenycli.launch.plan import Buffer, Launch, Plan
from teenycli.ptx.code import Op
from teenycli.ptx.model import Triple

#: Elements of a buffer up to which each of them is remembered, and of all outputs together.
_MOST, _MOST_WRITTEN = 1 << 24, 1 << 25
#: Elements of all buffers together, and CTAs of a launch, up to which they are remembered.
_MOST_IN_ALL, _MOST_CTAS = 1 << 27, 1 << 26
#: All bits of the number of a place.
_PLACES = (1 << 64 - SHIFT) - 1

#: Lanes by their indices, or all of them.
Lanes = Array | slice


@dataclass(slots=True)
class Touched:
    """One buffer. ``read`` and ``written`` have a bool an element of its memory, rows'
    padding included; None where it is too large. ``read_anywhere`` and
    ``written_anywhere``: an access was seen whose place is not known.

    ``reads``, ``writes`` and ``updates``: it was loaded from, stored to, changed by an atomic instruction.
    ``owner`` has for each element that is surely written the launch and CTA that wrote it, 0 for none; ``contested``
    where there were two.
    """

    buffer: Buffer
    read: Array | None = None
    written: Array | None = None
    owner: Array | None = None
    contested: Array | None = None
    read_anywhere: bool = False
    written_anywhere: bool = False
    reads: bool = False
    writes: bool = False
    updates: bool = False

    def missing(self, held: Array) -> Array:
        """Of ``read`` or ``written`` the elements of the tensor, in C order, that are not in it."""
        if not self.buffer.size:
            return ~held
        count, elems, stride = self.buffer.rows
        left: Array = ~held.reshape(count, stride)[:, :elems].reshape(-1)
        return left


@dataclass(frozen=True, slots=True)
class Miss:
    """An access that no buffer, or no shared memory, holds; or that is not aligned. The first of its kind.

    ``problem`` is bounds, null, misaligned or shared. ``offset`` is in bytes from the buffer's (or shared memory's)
    begin, ``size`` the bytes of the access, ``threads`` how many did so together, and ``end`` how far the furthest of
    them reached.
    """

    problem: str
    op: Op
    launch: int
    block: Triple
    thread: Triple
    buffer: str | None
    offset: int
    size: int
    writes: bool
    threads: int
    end: int


@dataclass(frozen=True)
class Where:
    """Who the lanes of a walk are: all ``threads`` of one of ``ctas`` (numbers in the grid) after the other."""

    launch: int
    grid: Triple
    block: Triple
    ctas: Array
    threads: int

    @cached_property
    def cta(self) -> Array:
        """The number of each lane's CTA."""
        return np.repeat(self.ctas, self.threads)

    def names(self, lane: int) -> tuple[Triple, Triple]:
        """Block and thread indices of a lane."""
        cta, thread = divmod(lane, self.threads)
        return _unravel(int(self.ctas[cta]), self.grid), _unravel(thread, self.block)


def _unravel(number: int, extents: Triple) -> Triple:
    x, y, _ = extents
    return number % x, number // x % y, number // (x * y)


@dataclass(slots=True)
class Access:
    """What an instruction does in memory: bytes at an address, aligned to ``align``; ``atomic`` where CTAs may meet."""

    op: Op
    size: int
    align: int
    reads: bool
    writes: bool
    atomic: bool = False


@dataclass
class Trace:
    """What has been seen so far of a plan. ``complete``: every CTA of every launch was walked to its end."""

    plan: Plan
    buffers: dict[str, Touched] = field(default_factory=dict)
    misses: dict[tuple[str, str | None, int], Miss] = field(default_factory=dict)
    #: By launch, the CTAs that touched anything; of one with too many nothing.
    busy: dict[int, Array] = field(default_factory=dict)
    complete: bool = True
    #: Operations on lanes that it took.
    spent: int = 0
    #: What buffers hold that no launch changes, where it is known: bytes, by name.
    contents: Mapping[str, Array] = field(default_factory=dict)
    #: Whether any of that told a thread where to go.
    guided: bool = False

    def __post_init__(self) -> None:
        self.buffers = {buffer.name: Touched(buffer) for buffer in self.plan.buffers}
        left, left_written = _MOST_IN_ALL, _MOST_WRITTEN
        for touched in sorted(self.buffers.values(), key=lambda each: each.buffer.nbytes):
            count = touched.buffer.nbytes // touched.buffer.dtype.size
            left -= count
            if count <= _MOST and left >= 0:
                touched.read, touched.written = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
                left_written -= count if touched.buffer.is_output else 0
                if touched.buffer.is_output and left_written >= 0:
                    touched.owner, touched.contested = np.zeros(count, np.int64), np.zeros(count, np.bool_)

    def begin(self, launch: Launch) -> None:
        """A launch is walked next."""
        if launch.ctas <= _MOST_CTAS:
            self.busy[launch.index] = np.zeros(launch.ctas, np.bool_)

    def stir(self, where: Where, some: Array) -> None:
        """The lanes in the mask ``some`` do something."""
        busy = self.busy.get(where.launch)
        if busy is not None and not busy[where.ctas].all():
            busy[where.ctas] |= some.reshape(-1, where.threads).any(axis=1)

    def touch(self, arena: Arena, access: Access, where: Where, some: Array, addresses: Array, sure: bool) -> None:
        """Note an access of the lanes in the mask ``some`` at generic ``addresses``, one for each lane or one for all.

        When it is not ``sure`` that it happens, it may cover elements, and misses nothing.
        """
        self.stir(where, some)
        lanes: Lanes = slice(None) if some.all() else np.flatnonzero(some)
        if len(addresses) > 1:
            addresses = addresses[lanes]
        ends = _ends(addresses)
        first, last = (end + HALF >> SHIFT for end in ends)
        if first == last:
            self._at(arena, first & _PLACES, access, where, lanes, addresses, ends, sure)
            return
        places = (addresses + np.uint64(HALF)) >> np.uint64(SHIFT)
        lanes = np.flatnonzero(some)
        for place in np.unique(places):
            chosen = places == place
            found = addresses[chosen]
            self._at(arena, int(place), access, where, lanes[chosen], found, _ends(found), sure)

    def _at(
        self, arena: Arena, place: int, access: Access, where: Where, lanes: Lanes, addresses: Array,
        ends: tuple[int, int], sure: bool,
    ) -> None:  # fmt: skip
        """Note an access of ``lanes`` in one place; ``ends`` are the least and the greatest address."""
        offsets = (addresses - np.uint64(place << SHIFT)).view(np.int64)
        if place == SHARED:  # of addresses with 32 bits the upper half lies before it
            offsets = np.where(offsets >> 31 == 1, offsets - (1 << 32), offsets)
        if place == 0:
            self._miss("null", access, where, lanes, offsets, np.ones(len(offsets), np.bool_), None, sure)
            return
        name = arena.buffer_at(place)
        if name is None and place != SHARED:
            if place >= FIRST_BUFFER:
                self._miss("bounds", access, where, lanes, offsets, np.ones(len(offsets), np.bool_), None, sure)
            return
        size = arena.shared if name is None else self.buffers[name].buffer.nbytes
        least, most = _ends(offsets) if place == SHARED else (end - (place << SHIFT) for end in ends)
        goes_out = least < 0 or most + access.size > size
        outside = (offsets < 0) | (offsets + access.size > size) if goes_out else None
        if outside is not None:
            self._miss("shared" if name is None else "bounds", access, where, lanes, offsets, outside, name, sure)
        if access.align > 1 and np.bitwise_or.reduce(offsets) & access.align - 1:  # a power of two
            crooked = offsets & access.align - 1 != 0
            if outside is not None:
                crooked &= ~outside
            if crooked.any():
                self._miss("misaligned", access, where, lanes, offsets, crooked, name, sure)
        if name is not None:
            ctas = where.cta[lanes]
            if len(offsets) == 1:  # one place for all: the first lane and the last stand for blocks that differ
                ctas, offsets = ctas[[0, -1]], offsets.repeat(2)
                outside = None if outside is None else outside.repeat(2)
            if outside is not None:
                offsets, ctas = offsets[~outside], ctas[~outside]
            if len(offsets):
                self._cover(self.buffers[name], access, where, offsets, ctas, sure)

    def _cover(
        self, touched: Touched, access: Access, where: Where, offsets: Array, ctas: Array, sure: bool
    ) -> None:  # fmt: skip
        """Note an access of the CTAs to elements at ``offsets``, all inside of the buffer."""
        touched.reads |= access.reads
        touched.writes |= access.writes and not access.atomic
        touched.updates |= access.atomic
        if not ((access.reads and touched.read is not None) or (access.writes and touched.written is not None)):
            return
        item = touched.buffer.dtype.size
        width = max(access.size // item, 1)
        for elements, of in _elements(offsets, access.size, item, width, ctas):
            if access.reads and touched.read is not None:
                touched.read[elements] = True
            if access.writes and touched.written is not None:
                touched.written[elements] = True
            owned = sure and access.writes and not access.atomic
            if owned and touched.owner is not None and touched.contested is not None:
                _own(touched.owner, touched.contested, elements, of + (where.launch << 40) + 1)

    def blur(self, names: list[str], reads: bool, writes: bool) -> None:
        """An access somewhere in these buffers."""
        for name in names:
            self.buffers[name].read_anywhere |= reads
            self.buffers[name].written_anywhere |= writes

    def _miss(
        self, problem: str, access: Access, where: Where, lanes: Lanes, offsets: Array, wrong: Array,
        name: str | None, sure: bool,
    ) -> None:  # fmt: skip
        key = problem, name, id(access.op)
        if not sure or key in self.misses:
            return
        at, numbers = int(np.flatnonzero(wrong)[0]), np.arange(len(where.cta))[lanes]
        block, thread = where.names(int(numbers[at]))
        threads = len(numbers) if len(offsets) == 1 else int(wrong.sum())
        self.misses[key] = Miss(
            problem, access.op, where.launch, block, thread, name, int(offsets[at]), access.size, access.writes,
            threads, int(offsets.max()) + access.size,
        )  # fmt: skip


def _ends(numbers: Array) -> tuple[int, int]:
    """The least and the greatest."""
    if len(numbers) == 1:
        return (int(numbers[0]),) * 2
    return int(np.minimum.reduce(numbers)), int(np.maximum.reduce(numbers))


def _elements(offsets: Array, size: int, item: int, width: int, ctas: Array) -> Iterator[tuple[Lanes, Array]]:
    """The elements of ``item`` bytes, ``width`` a lane, in accesses of ``size`` bytes at ``offsets``, with the CTA that
    each is of: as a slice, where each access begins at the end of the one before."""
    count = len(offsets)
    ordered = count > 1 and size == width * item and int(offsets[-1]) - int(offsets[0]) == (count - 1) * size
    if ordered and (offsets[1:] - offsets[:-1] == size).all():
        first = int(offsets[0]) // item
        yield slice(first, first + width * count), np.repeat(ctas, width) if width > 1 else ctas
        return
    elements = offsets >> item.bit_length() - 1  # a power of two
    for k in range(width):
        yield elements + k, ctas


def _own(owner: Array, contested: Array, elements: Lanes, ctas: Array) -> None:
    """``elements`` are written by these CTAs: note those that another one wrote, or writes too."""
    before = owner[elements]
    strange = (before > 0) & (before != ctas)
    owner[elements] = ctas
    if isinstance(elements, slice):
        contested[elements] |= strange
    else:
        contested[elements[strange]] = True
        contested[elements[owner[elements] != ctas]] = True
