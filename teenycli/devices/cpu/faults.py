"""From what generated code wrote down about a fault to an error that names everything.

May import ``errors``, ``exits``, ``layout``, ``memory``, ``program``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from teenycli.devices.cpu.layout import (
    ID_SHIFT,
    LOCAL_ID,
    OFFSET_MASK,
    PARAM_ID,
    RANK_SHIFT,
    SHARED_ID,
    FaultKind,
    Launch,
)
from teenycli.devices.cpu.memory import AddressSpace
from teenycli.devices.cpu.program import STACK_BYTES, Site
from teenycli.errors import Place, TeenyError
from teenycli.exits import Exit
from teenycli.ptx.model import Triple

#: Threads of a warp.
WARP = 32


class Region(Struct, frozen=True):
    """Memory with a name: what an address of one id is."""

    name: str
    size: int
    writable: bool = True


class Scene(Struct, frozen=True):
    """What is known of the launch: kernel, PTX file, its text by lines, block shape, sites, windows by id."""

    kernel: str
    file: str
    lines: Sequence[str]
    block: Triple
    sites: Sequence[Site]
    regions: dict[int, Region]
    space: AddressSpace
    assertions: Mapping[tuple[int, ...], str]
    waits: Sequence[tuple[int, int]]


def fault_error(record: Launch, scene: Scene) -> TeenyError:
    """The error for the fault in ``record``. Exit FAILED."""
    kind = FaultKind(record.fault_kind)
    site = scene.sites[record.fault_site]
    id, message, hint = _describe(kind, record, site, scene)
    text = scene.lines[site.line - 1] if 0 < site.line <= len(scene.lines) else None
    return TeenyError(
        id,
        f"kernel '{scene.kernel}': {message}",
        where=Place(scene.file, site.line, site.column, text=text),
        hint=hint,
        note=_whereabouts(record, site, scene),
        exit=Exit.FAILED,
    )


def thread_index(thread: int, block: Triple) -> Triple:
    """Thread ``thread`` of a block, counted from 0, as x, y, z."""
    x, y, _ = block
    return thread % x, thread // x % y, thread // (x * y)


def _whereabouts(record: Launch, site: Site, scene: Scene) -> str:
    block = tuple(record.fault_cta)
    thread = thread_index(record.fault_thread, scene.block)
    note = f"block {block}, thread {thread}"
    if site.source is not None:
        note += f", {_spot(site.source)}" + "".join(f", inlined at {_spot(spot)}" for spot in site.inlined_at)
    if site.function != scene.kernel:
        note += f", in function '{site.function}'"
    return note


def _spot(source: tuple[str, int, int]) -> str:
    return ":".join(map(str, source))


def _describe(kind: FaultKind, record: Launch, site: Site, scene: Scene) -> tuple[str, str, str | None]:
    """Id, message and hint."""
    if kind in (FaultKind.ACCESS, FaultKind.MISALIGNED):
        return _describe_access(kind, record, site, scene)
    if kind is FaultKind.STOPPED:
        return (
            "timeout",
            f"stopped by the time-out at '{site.text}'",
            "--timeout SECONDS gives it longer; 0 is no limit",
        )
    if kind is FaultKind.DEADLOCK:
        return (
            "deadlock",
            f"every thread that is left waits, and nothing can wake them: {_waiting(scene)}",
            "a barrier must be reached by as many threads as it waits for, an mbarrier by all its arrivals and bytes",
        )
    if kind is FaultKind.BARRIER and record.fault_address:
        return "bad-barrier", f"'{site.text}' is for {record.fault_address} threads, no multiple of {WARP}", None
    if kind is FaultKind.BARRIER:
        return "bad-barrier", f"'{site.text}' names a barrier past 15", None
    if kind is FaultKind.MEMBER_MASK:
        lane = record.fault_thread % WARP
        return (
            "bad-member-mask",
            f"'{site.text}' runs in lane {lane}, which its member mask {record.fault_address:#010x} does not name",
            "a member mask names every lane that comes to the instruction",
        )
    if kind is FaultKind.BRANCH:
        return "bad-branch", f"the index of '{site.text}' lies past its table of targets", None
    if kind is FaultKind.MBARRIER:
        return (
            "bad-mbarrier",
            f"'{site.text}' with {record.fault_address}, which is more than is pending or allowed there",
            "an mbarrier counts 1 to 1048575 arrivals, no more of them than it was made for",
        )
    if kind is FaultKind.COPY:
        return "bad-copy", f"'{site.text}' is given {record.fault_address} bytes, no multiple of 16", None
    if kind is FaultKind.DESCRIPTOR:
        return (
            "unsupported-instruction",
            f"'{site.text}' has a descriptor with base offset {record.fault_address}, which this device cannot run",
            "an NVIDIA GPU can: --device cuda",
        )
    if kind is FaultKind.BAD_CALL:
        return "bad-call", f"'{site.text}' goes to {record.fault_address:#x}, where no function for it is", None
    if kind is FaultKind.RECURSION:
        return (
            "recursion",
            f"'{site.text}' is {record.fault_address} calls deep, all a thread's stack of {STACK_BYTES} bytes",
            "a function that calls itself must come to an end",
        )
    if kind is FaultKind.STACK:
        return "stack-overflow", f"'{site.text}' wants more than the {STACK_BYTES} bytes that a thread has for it", None
    if kind is FaultKind.ASSERT:
        return "assertion", scene.assertions[(*record.fault_cta, record.fault_thread)], None
    if kind in (FaultKind.BAD_FREE, FaultKind.DOUBLE_FREE):
        return _describe_free(kind, record.fault_address)
    return "trap", f"'{site.text}' ended the kernel", None


def _waiting(scene: Scene) -> str:
    """Which warps wait where: ``warps 0 to 3 at 'bar.sync' in line 12``."""
    at: dict[int, list[int]] = {}
    for site, warp in scene.waits:
        at.setdefault(site, []).append(warp)
    parts = []
    for number, warps in at.items():
        place = scene.sites[number]
        whole = len(warps) > 2 and warps[-1] - warps[0] == len(warps) - 1
        names = f"{warps[0]} to {warps[-1]}" if whole else ", ".join(map(str, warps))
        parts.append(f"warp{'s' if len(warps) > 1 else ''} {names} at '{place.text}' in line {place.line}")
    return "; ".join(parts)


def _describe_free(kind: FaultKind, address: int) -> tuple[str, str, str | None]:
    if kind is FaultKind.DOUBLE_FREE:
        return "double-free", f"'free' of {address:#x}, which has been freed already", None
    return "bad-free", f"'free' of {address:#x}, which 'malloc' has not given", None


def _describe_access(kind: FaultKind, record: Launch, site: Site, scene: Scene) -> tuple[str, str, str | None]:
    address, size = record.fault_address, record.fault_size
    verb = "writes" if record.fault_writes else "reads"
    does = f"'{site.text}' {verb} {size} bytes" if size else f"'{site.text}' {verb}"
    number, offset = _split(address)
    region = _region(number, scene)
    if number == SHARED_ID and region is not None and 0 < offset >> RANK_SHIFT <= record.cluster_size:
        region = Region(f"shared memory of the cluster's block {(offset >> RANK_SHIFT) - 1}", region.size)
        offset &= (1 << RANK_SHIFT) - 1
    if number == 0 and region is None:
        return "null-pointer", f"{does} at address {address:#x}: a null pointer", None
    if kind is FaultKind.MISALIGNED:
        where = f"offset {offset} of {region.name}" if region else f"address {address:#x}"
        return "misaligned", f"{does} at {where}, which {record.fault_align} does not divide", None
    if region is None:
        return "out-of-bounds", f"{does} at {address:#x}, where no buffer is", None
    freed = scene.space.buffers.get(number)
    if freed is not None and freed.data is None:
        return "use-after-free", f"{does} of {region.name}, which has been freed", None
    if record.fault_writes and not region.writable:
        return "read-only", f"{does} at offset {offset} of {region.name}, which is read-only", None
    message = f"{does} at offset {offset} of {region.name}, which has {region.size} bytes"
    if 0 <= offset < region.size < offset + size:
        message += f": {offset + size - region.size} too many"
    return "out-of-bounds", message, None


def _split(address: int) -> tuple[int, int]:
    """The id in an address and the offset: negative where the access begins before what an id stands for."""
    number, offset = address >> ID_SHIFT, address & OFFSET_MASK
    if offset >> ID_SHIFT - 1:
        return number + 1, offset - (1 << ID_SHIFT)
    if number in (SHARED_ID, LOCAL_ID) and 1 << 31 <= offset < 1 << 32:  # of an address with 32 bits
        return number, offset - (1 << 32)
    return number, offset


def _region(number: int, scene: Scene) -> Region | None:
    """The memory that an id stands for."""
    known = scene.regions.get(number)
    if known is not None:
        return known
    buffer = scene.space.buffers.get(number)
    if buffer is not None:
        return Region("a block of the heap" if buffer.is_heap else f"buffer '{buffer.name}'", buffer.nbytes)
    return None


def window_regions(shared: int, local: int, params: int) -> dict[int, Region]:
    """The windows of shared, local and param memory, with their sizes in bytes."""
    return {
        SHARED_ID: Region("shared memory", shared),
        LOCAL_ID: Region("local memory", local),
        PARAM_ID: Region("the parameters", params, writable=False),
    }
