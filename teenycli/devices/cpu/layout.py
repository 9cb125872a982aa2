"""Structures that generated code and the runtime share, as ctypes sees them; and the map of device addresses.

A device address is ``buffer id << 40 | offset``. Ids below :data:`FIRST_BUFFER` are the windows of shared, local and
param memory and the kernel's own module variables. Imports nothing of ours.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum

ID_SHIFT = 40
OFFSET_MASK = (1 << ID_SHIFT) - 1

#: Ids of the windows. Id 0 is never mapped: an address below 2**40 is a null pointer, or near one.
SHARED_ID, LOCAL_ID, PARAM_ID = 1, 2, 3
#: In an address of shared memory, where the rank in the cluster stands, plus one; 0 is the CTA's own memory.
RANK_SHIFT = 24
#: Id in the addresses of functions, which no access may use.
FUNCTION_ID = 4
#: First id of a kernel's ``.global`` and ``.const`` variables.
FIRST_VARIABLE = 16
#: First id of a buffer; what lies between is for variables.
FIRST_BUFFER = 1024


class FaultKind(IntEnum):
    """What generated code reports; ``faults`` turns it into an error."""

    NONE = 0
    ACCESS = 1
    MISALIGNED = 2
    TRAP = 3
    STOPPED = 4
    DEADLOCK = 5
    MEMBER_MASK = 6
    BARRIER = 7
    BRANCH = 8
    ASSERT = 9
    BAD_FREE = 10
    DOUBLE_FREE = 11
    BAD_CALL = 12
    RECURSION = 13
    STACK = 14
    MBARRIER = 15
    COPY = 16
    DESCRIPTOR = 17


class Entry(ctypes.Structure):
    """A row of the address table: where a buffer lies, how many bytes may be read, how many written."""

    _fields_ = (
        ("base", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("writable", ctypes.c_uint64),
        ("reserved", ctypes.c_uint64),
    )


class Launch(ctypes.Structure):
    """One launch, shared by all threads of the pool.

    ``fault_size`` is the bytes of a faulty access (0: not known), ``fault_align`` what must divide its address,
    ``fault_writes`` whether it changes them.
    ``patience`` is the number of passes over a CTA's warps after which another CTA may run, 0 for no end.
    ``workspace`` is the address of memory for the grid's own barrier, in halves; 0 unless the launch is cooperative.
    """

    _fields_ = (
        ("next", ctypes.c_int64),
        ("total", ctypes.c_int64),
        ("chunk", ctypes.c_int64),
        ("grid", ctypes.c_int32 * 3),
        ("block", ctypes.c_int32 * 3),
        ("threads", ctypes.c_int32),
        ("warps", ctypes.c_int32),
        ("dynamic_shared", ctypes.c_int32),
        ("total_shared", ctypes.c_int32),
        ("tids", ctypes.c_uint64 * 3),
        ("stop", ctypes.c_int32),
        ("claimed", ctypes.c_int32),
        ("fault_kind", ctypes.c_int32),
        ("fault_site", ctypes.c_int32),
        ("fault_cta", ctypes.c_int32 * 3),
        ("fault_thread", ctypes.c_int32),
        ("fault_address", ctypes.c_uint64),
        ("fault_size", ctypes.c_uint64),
        ("fault_align", ctypes.c_uint32),
        ("fault_writes", ctypes.c_int32),
        ("service", ctypes.c_uint64),
        ("cluster", ctypes.c_int32 * 3),
        ("cluster_size", ctypes.c_int32),
        ("patience", ctypes.c_int32),
        ("workspace_low", ctypes.c_uint32),
        ("workspace_high", ctypes.c_uint32),
    )


class Barrier(ctypes.Structure):
    """One of a CTA's sixteen barriers: lanes arrived, lanes expected (0: all that live), and its reduction."""

    _fields_ = (
        ("arrived", ctypes.c_int32),
        ("expected", ctypes.c_int32),
        ("count", ctypes.c_int32),
        ("all", ctypes.c_int32),
        ("result_count", ctypes.c_int32),
        ("result_all", ctypes.c_int32),
    )


#: The barrier of the whole cluster, after a CTA's own sixteen.
CLUSTER_BARRIER = 16


class Context(ctypes.Structure):
    """A resident CTA: its windows, its place in the grid, its warps' frames and barriers.

    ``busy`` says whether it is under way (see :class:`Progress`), ``alive`` counts its lanes that are, ``verdict`` is
    a fault that a service of the host has found. ``peers`` point to the shared memory of each CTA of the cluster;
    ``cluster_open`` lets the lanes pass that wait for the cluster.
    """

    _fields_ = (
        ("table", ctypes.c_uint64),
        ("entries", ctypes.c_uint64),
        ("params", ctypes.c_uint64),
        ("shared", ctypes.c_uint64),
        ("shared_size", ctypes.c_uint64),
        ("local", ctypes.c_uint64),
        ("local_size", ctypes.c_uint64),
        ("frames", ctypes.c_uint64),
        ("launch", ctypes.c_uint64),
        ("cta", ctypes.c_int32 * 3),
        ("warp", ctypes.c_int32),
        ("alive", ctypes.c_int32),
        ("busy", ctypes.c_int32),
        ("dead", ctypes.c_int32),
        ("verdict", ctypes.c_int32),
        ("peers", ctypes.c_uint64),
        ("peer_count", ctypes.c_int32),
        ("cluster_open", ctypes.c_int32),
        ("barriers", Barrier * (CLUSTER_BARRIER + 1)),
    )


class FrameHead(ctypes.Structure):
    """The head of a warp's frame. Per-lane pcs, per-lane barriers and registers follow it.

    A warp whose living lanes all wait at one place has the index of the block to go on with in ``resume``, those
    lanes in ``mask`` and what they wait for in ``barrier``. Else ``resume`` is :data:`LANES_DIFFER`. ``cluster`` has
    the lanes that have arrived at the cluster's barrier since it was last complete.
    """

    _fields_ = (
        ("state", ctypes.c_int32),
        ("alive", ctypes.c_int32),
        ("site", ctypes.c_int32),
        ("resume", ctypes.c_int32),
        ("barrier", ctypes.c_int32),
        ("mask", ctypes.c_uint32),
        ("cluster", ctypes.c_uint32),
        ("pad", ctypes.c_int32 * 9),
    )


#: ``FrameHead.resume`` when lanes of the warp wait at different places.
LANES_DIFFER = -1


class WarpState(IntEnum):
    """``FrameHead.state``: how the driver treats a warp."""

    FRESH = 0
    READY = 1
    WAITING = 2
    DONE = 3


class Progress(IntEnum):
    """``Context.busy``: nothing under way, a CTA that was interrupted, one that has been given and has not begun."""

    IDLE = 0
    UNDER_WAY = 1
    GIVEN = 2


class Outcome(IntEnum):
    """What ``teeny_run`` returns: no CTA left, patience ended, the launch ended, all wait for others of the cluster.

    ``STALLED`` is ``WAITING`` of a CTA that has done nothing at all since it was called.
    """

    FINISHED = 0
    PAUSED = 1
    STOPPED = 2
    WAITING = 3
    STALLED = 4


#: What a warp function returns. A stalled warp has only looked, once more in vain, at what it waits for.
DONE, SUSPENDED, FAULTED, STALLED = 0, 1, 2, 3

#: Added to a lane's pc while it waits at a barrier; above every block index.
WAITING_PC = 1 << 20
#: Added to it while the lane waits at ``bar.warp.sync`` for others of its warp.
MEETING_PC = 1 << 21
#: The pc of a lane that has exited, or is not parked.
NO_PC = 0x7FFFFFFF


def offset(structure: type[ctypes.Structure], field: str, axis: int = 0) -> int:
    """Byte offset of a field, or of one axis (0 for x) of a field that has three."""
    descriptor = getattr(structure, field)
    return int(descriptor.offset) + axis * (int(descriptor.size) // 3)
