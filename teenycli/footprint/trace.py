"""What the launches of a plan touch: the elements of each buffer that are read and written, and accesses that miss.

``Trace.touch`` is what a walk tells of one instruction. May import ``footprint.arena``, ``footprint.lanes``,
``launch.plan``, ``ptx.code`` and numpy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from teenycli.footprint.arena import FIRST_BUFFER, HALF, SHARED, SHIFT, Arena
from teenycli.footprint.lanes import Array
from teenycli.launch.plan import Buffer, Launch, Plan
from teenycli.ptx.code import Op
from teenycli.ptx.model import Triple
from teenycli.ptx.strides import Unit

#: Elements of a buffer up to which each of them is remembered, and of all outputs together.
_MOST, _MOST_WRITTEN = 1 << 24, 1 << 25
#: Elements of all buffers together, and CTAs of a launch, up to which they are remembered.
_MOST_IN_ALL, _MOST_CTAS = 1 << 27, 1 << 26
#: All bits of the number of a place.
_PLACES = (1 << 64 - SHIFT) - 1

#: Where the number of the launch begins in an owner's.
_LAUNCH = 40

#: Lanes by their indices, or all of them.
Lanes = Array | slice


class Touched(Struct):
    """One buffer. ``read`` and ``written`` have a bool an element of its memory, rows'
    padding included; None where it is too large. ``read_anywhere`` and
    ``written_anywhere``: an access was seen whose place is not known.

    ``reads``, ``writes`` and ``updates``: it was loaded from, stored to, changed by an atomic instruction. ``pieces``:
    bytes of the narrowest accesses, where these take its elements apart: some begin within one.
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
    pieces: int = 0

    @property
    def seen(self) -> Array | None:
        """The elements that were read or written; None where that is not known of all."""
        if self.read is None or self.written is None or self.read_anywhere or self.written_anywhere:
            return None
        return self.read | self.written

    def missing(self, held: Array) -> Array:
        """Of ``read`` or ``written`` the elements of the tensor, in C order, that are not in it."""
        if not self.buffer.size:
            return ~held
        count, elems, stride = self.buffer.rows
        left: Array = ~held.reshape(count, stride)[:, :elems].reshape(-1)
        return left


class Miss(Struct, frozen=True):
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


class Where(Struct, frozen=True, dict=True):
    """Who the lanes of a walk are: all ``threads`` of one of ``ctas`` (numbers in the grid) after the other."""

    launch: int
    grid: Triple
    block: Triple
    ctas: Array
    threads: int

    @cached_property
    def owners(self) -> Array:
        """A number above 0 for each lane, that of its launch and CTA."""
        return np.repeat((self.launch << _LAUNCH) + 1 + self.ctas, self.threads)

    def names(self, lane: int) -> tuple[Triple, Triple]:
        """Block and thread indices of a lane."""
        cta, thread = divmod(lane, self.threads)
        return _unravel(int(self.ctas[cta]), self.grid), _unravel(thread, self.block)


def _unravel(number: int, extents: Triple) -> Triple:
    x, y, _ = extents
    return number % x, number // x % y, number // (x * y)


class Access(Struct):
    """What an instruction does in memory: bytes at an address, aligned to ``align``; ``atomic`` where CTAs may meet.
    ``shares``: they may, too, where what is stored is the same for all."""

    op: Op
    size: int
    align: int
    reads: bool
    writes: bool
    atomic: bool = False
    is_shared: bool = False
    shares: bool = False


class Span(NamedTuple):
    """Where lanes access memory, ``size`` bytes each: their addresses, or the one of them all, the ``least`` and the
    ``most``. ``in_row``: each begins where the one before ends."""

    addresses: Array
    size: int
    least: int
    most: int
    in_row: bool

    @classmethod
    def of(cls, addresses: Array, size: int) -> Span:
        first, last = int(addresses[0]), int(addresses[-1])
        if len(addresses) == 1:
            return cls(addresses, size, first, first, in_row=False)
        if last - first == (len(addresses) - 1) * size and (addresses[1:] - addresses[:-1] == size).all():
            return cls(addresses, size, first, last, in_row=True)
        return cls(addresses, size, int(np.minimum.reduce(addresses)), int(np.maximum.reduce(addresses)), in_row=False)

    def offsets(self, place: int) -> Array:
        """Addresses from the begin of a place on; of shared memory, with 32 bits, the upper half lies before it."""
        offsets = (self.addresses - np.uint64(place << SHIFT)).view(np.int64)
        return np.where(offsets >> 31 == 1, offsets - (1 << 32), offsets) if place == SHARED else offsets

    def is_crooked(self, align: int) -> bool:
        """Whether any address is no multiple of ``align``, a power of two."""
        bits = self.least if self.in_row and self.size % align == 0 else int(np.bitwise_or.reduce(self.addresses))
        return bits & align - 1 != 0


class Bound(Struct, frozen=True):
    """A comparison of threads' indices with a number that ``units`` have a part in, values that are passed. ``last`` is
    the last index within it, ``nearest`` how far beyond that one the index that came nearest lies: negative where none
    came to it."""

    op: Op
    units: tuple[Unit, ...]
    launch: int
    last: int
    nearest: int


@dataclass
class Trace:
    """What has been seen so far of a plan. ``complete``: every CTA of every launch was walked to its end."""

    plan: Plan
    buffers: dict[str, Touched] = field(default_factory=dict)
    misses: dict[tuple[str, str | None, int], Miss] = field(default_factory=dict)
    #: Parameters (bits, all set where they are not known) through which something may be accessed, or not.
    doubtful: int = 0
    #: By what has a part in a bound: the comparison that came nearest to it, None where what is compared is not known.
    bounds: dict[tuple[Unit, ...], Bound | None] = field(default_factory=dict)
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
        span = Span.of(addresses[lanes] if len(addresses) > 1 else addresses, access.size)
        place = span.least + HALF >> SHIFT
        if place == span.most + HALF >> SHIFT:
            self._at(arena, place & _PLACES, access, where, lanes, span, sure)
            return
        places = (span.addresses + np.uint64(HALF)) >> np.uint64(SHIFT)
        lanes = np.flatnonzero(some)
        for place in map(int, np.unique(places)):
            chosen = places == place
            there = Span.of(span.addresses[chosen], access.size)
            self._at(arena, place, access, where, lanes[chosen], there, sure)

    def _at(
        self, arena: Arena, place: int, access: Access, where: Where, lanes: Lanes, span: Span, sure: bool
    ) -> None:  # fmt: skip
        """Note an access of ``lanes`` in one place."""

        def miss(problem: str, wrong: Array) -> None:
            self._miss(problem, access, where, lanes, span.offsets(place), wrong, name, sure)

        name = arena.buffer_at(place)
        if name is None and place != SHARED:
            if place == 0 or place >= FIRST_BUFFER:
                miss("bounds" if place else "null", np.ones(len(span.addresses), np.bool_))
            return
        begin, size = place << SHIFT, arena.shared if name is None else self.buffers[name].buffer.nbytes
        outside: Array | None = None
        if span.least < begin or span.most + access.size > begin + size:
            offsets = span.offsets(place)
            outside = (offsets < 0) | (offsets + access.size > size)
            miss("shared" if name is None else "bounds", outside)
        if span.is_crooked(access.align):
            crooked = span.addresses & np.uint64(access.align - 1) != 0
            if outside is not None:
                crooked &= ~outside
            if crooked.any():
                miss("misaligned", crooked)
        if name is not None:
            self._cover(self.buffers[name], access, where, lanes, span, place, outside, sure)

    def _cover(
        self, touched: Touched, access: Access, where: Where, lanes: Lanes, span: Span, place: int,
        outside: Array | None, sure: bool,
    ) -> None:  # fmt: skip
        """Note an access of ``lanes`` to a buffer's elements at its ``place``, those ``outside`` of it left out."""
        if outside is not None and outside.all():
            return
        touched.reads |= access.reads
        touched.writes |= access.writes and not access.atomic
        touched.updates |= access.atomic
        read, written = touched.read if access.reads else None, touched.written if access.writes else None
        if read is None and written is None:
            return
        item = touched.buffer.dtype.size
        if access.size < item and np.bitwise_or.reduce(span.addresses) & (item - 1):
            touched.pieces = min(touched.pieces or access.size, access.size)
        owned = sure and access.writes and not access.shares and touched.owner is not None
        owners = where.owners[lanes] if owned else None
        for elements, by in _elements(span, place, outside, item, max(access.size // item, 1), owners):
            if read is not None:
                read[elements] = True
            if written is not None:
                written[elements] = True
            if by is not None and touched.owner is not None and touched.contested is not None:
                _own(touched.owner, touched.contested, elements, by)

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
        at, numbers = int(np.flatnonzero(wrong)[0]), np.arange(len(where.ctas) * where.threads)[lanes]
        block, thread = where.names(int(numbers[at]))
        threads = len(numbers) if len(offsets) == 1 else int(wrong.sum())
        self.misses[key] = Miss(
            problem, access.op, where.launch, block, thread, name, int(offsets[at]), access.size, access.writes,
            threads, int(offsets.max()) + access.size,
        )  # fmt: skip


def _elements(
    span: Span, place: int, outside: Array | None, item: int, width: int, owners: Array | None
) -> Iterator[tuple[Lanes, Array | None]]:  # fmt: skip
    """The elements of ``item`` bytes, ``width`` a lane, that are accessed, and the owner of each; as a slice where they
    lie in a row."""
    if span.in_row and outside is None and span.size == width * item:
        first = (span.least - (place << SHIFT)) // item
        by = owners if owners is None or width == 1 else np.repeat(owners, width)
        yield slice(first, first + width * len(span.addresses)), by
        return
    offsets = span.offsets(place)
    if len(offsets) == 1 and owners is not None:  # the first lane and the last stand for blocks that differ
        offsets, owners = offsets.repeat(2), owners[[0, -1]]
    elif outside is not None:
        offsets, owners = offsets[~outside], None if owners is None else owners[~outside]
    elements = offsets >> item.bit_length() - 1  # a power of two
    for k in range(width):
        yield elements + k, owners


def _own(owner: Array, contested: Array, elements: Lanes, by: Array) -> None:
    """``elements`` are written by these owners: note those that another one wrote, or writes too."""
    before = owner[elements]
    if before.any():
        strange = (before > 0) & (before != by) & (before >> _LAUNCH == by >> _LAUNCH)
        contested[elements if isinstance(elements, slice) else elements[strange]] |= (
            strange if isinstance(elements, slice) else True
        )
    owner[elements] = by
    if not isinstance(elements, slice):  # which may have one of them twice
        contested[elements[owner[elements] != by]] = True
