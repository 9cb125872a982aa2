"""The CTAs of a launch that are resident, and the turns they take on the threads of the pool.

Most launches keep one CTA a thread, and generated code hands out the next. Where CTAs may wait for each other, one
that has had its turn makes room for the others, so that each comes on; the CTAs of a cluster are resident together on
one thread.

May import ``faults``, ``kernel``, ``layout``, ``memory``, ``services``.
"""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from itertools import count
from typing import Any

from msgspec import Struct, field

from teenycli.devices.cpu.faults import WARP, Region
from teenycli.devices.cpu.kernel import Image
from teenycli.devices.cpu.layout import (
    CLUSTER_BARRIER,
    PARAM_ID,
    SHARED_ID,
    Context,
    FaultKind,
    FrameHead,
    Launch,
    Outcome,
    Progress,
    WarpState,
)
from teenycli.devices.cpu.memory import AddressSpace, Bytes, aligned_bytes
from teenycli.devices.cpu.services import HEAP_BLOCKS, Services
from teenycli.errors import Finding
from teenycli.ptx.model import Module

#: Bytes that the resident CTAs of one thread may take, and how many they may be, where CTAs need not all be there.
RESIDENT_BYTES, RESIDENT_CTAS = 512 << 20, 2048
#: Bytes that those of a cooperative launch may take, which are all resident.
COOPERATIVE_BYTES = 4 << 30

_RUN = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)


class CpuKernel(Struct, eq=False):
    """An entry made ready to launch. ``variables`` hold the module's own memory, by id, between launches."""

    module: Module
    entry: str
    image: Image
    address: int
    keep: Any
    compile_ms: float
    cached: bool
    variables: dict[int, tuple[Region, Bytes]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


class Hall:
    """The resident CTAs of one launch. ``waits`` says, after a deadlock, where warps wait: (site, warp) pairs."""

    def __init__(
        self,
        kernel: CpuKernel,
        record: Launch,
        shared: int,
        params: Bytes,
        space: AddressSpace,
        services: Services,
        *,
        is_cooperative: bool = False,
    ) -> None:
        self.kernel = kernel
        self.record = record
        self.shared = shared
        self.params = params
        self.space = space
        self.services = services
        self.waits: list[tuple[int, int]] = []
        self._function = _RUN(kernel.address)
        self.is_cooperative = is_cooperative
        self._clusters = count()
        self._lock = threading.Lock()

    def _turn(self, room: Room) -> int:
        """Let a CTA run, or have the next; an ``Outcome``."""
        outcome = self._function(ctypes.addressof(self.record), ctypes.addressof(room.context))
        if outcome == Outcome.STOPPED and not room.context.dead:
            self._claim(room, FaultKind.STOPPED)
        return int(outcome)

    def room(self) -> Room:
        """Memory for one more CTA."""
        with self._lock:
            room = Room(self.kernel, self.record, self.shared, self.params, self.space)
            self.services.tables.append(room.table)
        return room

    def run_ctas(self) -> None:
        """One thread's work: CTAs, as long as there are any, with more of them resident while they wait."""
        rooms = deque([self.room()])
        spare: list[Room] = []
        most = self.record.total if self.is_cooperative else min(RESIDENT_CTAS, max(2, RESIDENT_BYTES // rooms[0].size))
        while rooms:
            outcome = self._turn(rooms[0])
            if outcome in (Outcome.WAITING, Outcome.STALLED):
                self._claim(rooms[0], FaultKind.DEADLOCK)
                return
            if outcome == Outcome.STOPPED:
                return
            if outcome == Outcome.FINISHED:
                spare.append(rooms.popleft())
                continue
            rooms.rotate(-1)
            if self.record.next < self.record.total and len(rooms) < most:
                rooms.appendleft(spare.pop() if spare else self.room())

    # --- clusters --------------------------------------------------------------------------------------------

    def run_clusters(self) -> None:
        """One thread's work: clusters, one after the other, their CTAs in turns."""
        size = self.record.cluster_size
        rooms = [self.room() for _ in range(size)]
        peers = (ctypes.c_uint64 * size)(*(room.context.shared for room in rooms))
        for room in rooms:
            room.context.peers = ctypes.addressof(peers)
            room.context.peer_count = size
        total = self.record.total // size
        self.record.next = self.record.total  # nothing is left for generated code to hand out
        while (number := next(self._clusters)) < total:
            for rank, room in enumerate(rooms):
                room.context.cta = self._place(number, rank)
                room.context.busy = Progress.GIVEN
                room.context.cluster_open = 0
            if not self._run_cluster(rooms):
                return

    def _place(self, cluster: int, rank: int) -> Any:
        """The index in the grid of a cluster's CTA."""
        place = []
        for grid, size in zip(self.record.grid, self.record.cluster, strict=True):
            along = grid // size
            place.append(cluster % along * size + rank % size)
            cluster, rank = cluster // along, rank // size
        return (ctypes.c_int32 * 3)(*place)

    def _run_cluster(self, rooms: list[Room]) -> bool:
        """Whether a cluster has come to its end."""
        left = rooms
        while left:
            outcomes = [(room, self._turn(room)) for room in left]
            if any(outcome == Outcome.STOPPED for _, outcome in outcomes):
                return False
            left = [room for room, outcome in outcomes if outcome != Outcome.FINISHED]
            if left and all(room.is_at_cluster_barrier for room in left):
                for room in left:
                    room.context.cluster_open = 1
            elif all(outcome == Outcome.STALLED for _, outcome in outcomes):
                self._claim(next(room for room in left if not room.is_at_cluster_barrier), FaultKind.DEADLOCK)
                return False
        return True

    def _claim(self, room: Room, kind: FaultKind) -> None:
        """Write down that a CTA's warps are where they are, unless there is a fault already."""
        record = self.record
        waits = room.waits(record.warps, self.kernel.image)
        with self._lock:
            if record.claimed or not waits:
                return
            record.claimed = 1
            self.waits = waits
            record.fault_kind = kind
            record.fault_site, warp = waits[-1]
            record.fault_cta = room.context.cta
            record.fault_thread = warp * WARP
            record.stop = 1


class Room:
    """Memory and context of one resident CTA. ``size`` in bytes."""

    def __init__(self, kernel: CpuKernel, record: Launch, shared: int, params: Bytes, space: AddressSpace) -> None:
        image = kernel.image
        self.shared = aligned_bytes(max(shared, 64))
        self.local = aligned_bytes(image.local_size * (record.threads + 64))
        self.frames = aligned_bytes(max(image.frame_size * record.warps, 64))
        self.table = space.table(HEAP_BLOCKS if image.heap else 0)
        self.table[SHARED_ID] = (self.shared.ctypes.data, shared, shared, 0)
        self.table[PARAM_ID] = (params.ctypes.data, image.param_bytes, 0, 0)
        for number, (region, data) in kernel.variables.items():
            self.table[number] = (data.ctypes.data, region.size, region.size if region.writable else 0, 0)
        self.size = sum(part.nbytes for part in (self.shared, self.local, self.frames, self.table))
        self.context = Context(
            table=self.table.ctypes.data, entries=len(self.table), params=params.ctypes.data,
            shared=self.shared.ctypes.data, shared_size=shared, local=self.local.ctypes.data,
            local_size=image.local_size, frames=self.frames.ctypes.data, launch=ctypes.addressof(record),
        )  # fmt: skip

    @property
    def is_at_cluster_barrier(self) -> bool:
        """Whether every thread that is left has arrived at the cluster's barrier."""
        return bool(self.context.barriers[CLUSTER_BARRIER].arrived >= self.context.alive)

    def waits(self, groups: int, image: Image) -> list[tuple[int, int]]:
        """Site and number of each warp that waits, or looks in vain at what it waits for.

        Generated code runs ``groups`` vectors of lanes, which may be halves or quarters of a warp.
        """
        heads = [FrameHead.from_address(self.context.frames + group * image.frame_size) for group in range(groups)]
        found = {(head.site, group * image.width // WARP): None for group, head in enumerate(heads)
                 if head.state != WarpState.DONE}  # fmt: skip
        return list(found)
