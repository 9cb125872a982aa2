"""Rules on what an SM has room for: registers, resident blocks, whole warps.

PTX ISA, "Performance-Tuning Directives" and "Warp-level" instructions; CUDA C++ Programming Guide, "Compute
Capabilities". May import ``checks.subject`` and what it may.
"""

from __future__ import annotations

from collections.abc import Iterator

from teenycli.checks.subject import Subject
from teenycli.errors import Finding, Severity

_WARP = 32
#: No GPU has more SMs than that: as many are on the largest Blackwell chip.
_SMS = 192
#: Registers are handed out to a thread by eights, and to warps by fours.
_BY_THREAD, _BY_WARP = 8, 4


def register_file(subject: Subject) -> Iterator[Finding]:
    """A block of threads with as many registers as ``.maxnreg`` allows fits the register file.

    With ``.maxntid`` or ``.reqntid`` the compiler sees to it.
    """
    directives, threads = subject.entry.directives, subject.launch.threads
    most = directives.maxnreg
    if most is None or directives.maxntid is not None or directives.reqntid is not None:
        return
    taken = _up(most, _BY_THREAD) * _WARP * _up(-(-threads // _WARP), _BY_WARP)
    if 0 < threads <= subject.limits.threads_per_block and taken > subject.limits.registers:
        yield Finding(
            "register-limit",
            f"{threads:,} threads of up to {most} registers (.maxnreg) take {taken:,}; a block can have "
            f"{subject.limits.registers:,}",
            Severity.WARNING,
            where=subject.key("block"),
            hint="launch fewer threads, or compile with __launch_bounds__, which lets the compiler see to it",
        )


def _up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple


def resident_blocks(subject: Subject) -> Iterator[Finding]:
    """As many blocks as ``.minnctapersm`` asks for fit an SM at once, by threads, shared memory and count."""
    wanted, limits = subject.entry.directives.minnctapersm, subject.limits
    shared = subject.static_shared + subject.launch.shared
    threads = _up(subject.launch.threads, _WARP)
    if wanted is None or threads <= 0:
        return
    for each, most, what in (
        (1, limits.sm_blocks, "blocks"),
        (threads, limits.sm_threads, "threads"),
        (shared + limits.shared_reserved if shared else 0, limits.sm_shared, "bytes of shared memory"),
    ):
        if wanted * each > most:
            yield Finding(
                "occupancy-limit",
                f"the entry was compiled for {wanted} blocks an SM (.minnctapersm), and an SM of sm_{subject.sm} has "
                f"{most:,} {what}, no {wanted * each:,}",
                Severity.WARNING,
                where=subject.key("shared" if "shared" in what else "block"),
                hint=f"{most // each} fit; the registers saved for more are spilled for nothing",
            )


def cooperative_grid(subject: Subject) -> Iterator[Finding]:
    """A cooperative launch is one whose blocks are all resident at once: no more than the largest GPU has room for."""
    launch, limits = subject.launch, subject.limits
    threads = _up(launch.threads, _WARP)
    if not launch.cooperative or threads <= 0:
        return
    shared = subject.static_shared + launch.shared
    each = min(limits.sm_blocks, limits.sm_threads // threads)
    if shared:
        each = min(each, limits.sm_shared // (shared + limits.shared_reserved))
    if 0 < each * _SMS < launch.ctas:
        yield Finding(
            "cooperative-grid",
            f"a cooperative launch of {launch.ctas:,} blocks; an SM of sm_{subject.sm} has room for {each} at once, "
            f"and no GPU has more than {_SMS} SMs",
            where=subject.key("grid"),
            hint="launch as many blocks as are resident, and let each of them loop over several parts",
        )


def cooperative_missing(subject: Subject) -> Iterator[Finding]:
    """A kernel that may wait for its whole grid is launched cooperatively: CUDA's headers trap where it is not."""
    if not subject.launch.cooperative and subject.compiled.waits_for_grid:
        yield Finding(
            "cooperative-missing",
            "the kernel may wait for its whole grid (%envreg2, as grid.sync() does), and the launch is not cooperative",
            Severity.WARNING,
            where=subject.key("cooperative"),
            hint="cooperative = true (--cooperative)",
        )


def unread_axes(subject: Subject) -> Iterator[Finding]:
    """A grid and a block reach into no dimension in which no thread asks where it is, though it does in another: all
    would do the same."""
    of_block, of_grid = subject.compiled.axes
    for what, extents, register, read in (
        ("grid", subject.launch.grid, "ctaid", of_grid), ("block", subject.launch.block, "tid", of_block),
    ):  # fmt: skip
        if not read or (what == "block" and subject.entry.directives.reqntid is not None):
            continue  # the block is the compiler's
        for axis, extent in zip("xyz", extents, strict=True):
            if extent > 1 and axis not in read:
                yield Finding(
                    "axis-unread",
                    f"{what}.{axis} is {extent:,}, and the kernel never reads %{register}.{axis}: "
                    f"{extent:,} {'blocks' if what == 'grid' else 'threads'} do the same",
                    Severity.WARNING,
                    where=subject.key(what),
                    hint=f"leave {axis} at 1; is the count meant for another dimension?",
                )


def whole_warps(subject: Subject) -> Iterator[Finding]:
    """A block is of whole warps where the body has instructions that all of a warp takes part in."""
    threads = subject.launch.threads
    if threads <= 0 or threads % _WARP == 0:
        return
    op = subject.compiled.warp_wide
    if op is not None:
        yield Finding(
            "partial-warp",
            f"the block has {threads:,} threads, {threads % _WARP} of them in its last warp, and the kernel's "
            f"{op.opcode} (line {op.at.line}) is for all {_WARP} of a warp",
            Severity.WARNING,
            where=subject.key("block"),
            hint=f"round the block up: {_up(threads, _WARP):,} threads",
        )
