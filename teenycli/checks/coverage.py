"""Rules on how far launches go over their buffers: outputs whole and each element by one block, inputs for the most
part, bounds up to their ends.

They rest on a trace of what the launches touch. May import ``checks.subject``, ``checks.strides``, ``checks.values``,
``checks.words``, and what these may.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING

from teenycli.checks.strides import stands_still
from teenycli.checks.subject import Subject
from teenycli.checks.values import data_extents
from teenycli.checks.words import count, triple, which
from teenycli.errors import Finding, Severity
from teenycli.launch.plan import Address, Plan

if TYPE_CHECKING:
    from teenycli.footprint import Touched, Trace
    from teenycli.footprint.lanes import Array


#: Up to so many rows or columns all of them count, and up to this a dim is no extent.
_FEW = 8


def coverage(subjects: Sequence[Subject], trace: Trace, largest: Collection[str]) -> Iterator[Finding]:
    """Elements of outputs that no thread writes or two blocks do, inputs that are hardly read, bounds that no index
    comes to, blocks that do nothing. ``largest`` are the inputs of which no other case has more."""
    found = [finding for touched in trace.buffers.values() for finding in _of_buffer(subjects, trace, touched, largest)]
    yield from found
    if trace.complete and not found and not trace.guided:
        yield from _short_of_bounds(subjects, trace)
    if trace.complete:
        yield from _idle_blocks(subjects, trace)


def _of_buffer(
    subjects: Sequence[Subject], trace: Trace, touched: Touched, largest: Collection[str]
) -> Iterator[Finding]:  # fmt: skip
    """What is wrong with what was touched of one buffer."""
    subject, buffer = subjects[0], touched.buffer
    yield from _overlap(subject, touched)
    yield from _not_begun(subject, touched)
    if not trace.complete:
        return
    if buffer.role == "output" or not trace.guided:  # what is in place may end where data say
        whole = bool(largest) if buffer.role == "output" else buffer.name in largest
        yield from _not_covered(subject, touched, whole=whole)
    yield from _taken_apart(subject, touched)
    if buffer.name in largest and not trace.guided:  # indices choose what is read
        yield from _hardly_read(subjects, touched)


def _overlap(subject: Subject, touched: Touched) -> Iterator[Finding]:
    """No element of an output is stored by two blocks of a launch, but under a lock."""
    contested = int(touched.contested.sum()) if touched.contested is not None else 0
    if contested and not ((touched.reads or touched.read_anywhere) and subject.compiled.has_locks):
        yield Finding(
            "output-overlap",
            f"{count(contested, 'element')} of '{_name(touched)}' {'is' if contested == 1 else 'are'} written by more "
            "than one block: the last one wins",
            Severity.WARNING,
            where=subject.key(touched.buffer.source),
            hint="do strides, grid and block belong together? What several blocks add to wants atomics",
        )


def _not_begun(subject: Subject, touched: Touched) -> Iterator[Finding]:
    """What atomics alone write says what it holds at first."""
    buffer = touched.buffer
    if buffer.role == "output" and buffer.init is None and touched.updates and not touched.writes:
        yield Finding(
            "output-not-begun",
            f"the kernel writes '{_name(touched)}' with atomic instructions alone, which add to what is there; nothing "
            "says what that is",
            where=subject.key(buffer.source),
            hint='init = "zeros", or what the sum, the maximum or the flag begins with',
        )


def _not_covered(subject: Subject, touched: Touched, *, whole: bool) -> Iterator[Finding]:
    """An output is written from end to end, unless something is to be there before or is added to.

    In place a part may well be meant, as a cache that grows by a row; what is updated should be so up to its end, where
    a kernel has ``whole`` blocks to do.
    """
    buffer, written = touched.buffer, touched.written
    in_place = buffer.role != "output"
    is_begun = in_place or (buffer.init is not None and not subject.plan.backward)
    if written is None or not _is_to_be_covered(subject, touched, is_begun=is_begun, whole=whole):
        return
    missing = touched.missing(written)
    unwritten = int(missing.sum())
    first = int(missing.argmax()) if unwritten else 0
    at_end = first + unwritten == buffer.size
    if not unwritten or (in_place and not at_end) or (in_place and first and _is_said(subject, buffer.shape, first)):
        return
    whose = f"any of the {buffer.size:,}" if unwritten == buffer.size else f"{unwritten:,} of {buffer.size:,}"
    yield Finding(
        "output-not-covered",
        f"no thread writes {whose} elements of '{_name(touched)}'"
        + (f", the first at {_index(first, buffer.shape)}" if unwritten < buffer.size else "")
        + (": they stay as they were" if is_begun else ""),
        Severity.WARNING if is_begun else Severity.ERROR,
        where=subject.key("grid" if at_end else buffer.source),
        hint="does the grid cover the output?" + ("" if is_begun else ' What is zero elsewhere wants init = "zeros"'),
        note=f"grid {triple(subject.launch.grid)} of blocks {triple(subject.launch.block)}",
    )


def _is_to_be_covered(subject: Subject, touched: Touched, *, is_begun: bool, whole: bool) -> bool:
    """Whether all of a buffer should be written, as far as that can be seen: where something is there before, what
    stores to it goes over all that it reads, and some thread stores to it at all."""
    buffer = touched.buffer
    if not buffer.is_output or touched.written_anywhere or not all(launch.ctas for launch in subject.plan.launches):
        return False  # that a grid is empty is another rule's affair
    if touched.updates:
        return False
    if touched.writes:
        return not is_begun or (buffer.role != "output" and touched.reads and whole)
    # Of little there may be nothing to do.
    return (whole or not is_begun) and _may_store(subject, buffer.name)


def _may_store(subject: Subject, name: str) -> bool:
    """Whether the body stores to the buffer, if a thread gets there. Where a tensor map leads nobody knows."""
    uses = (use for _, _, item, use in subject.passed if isinstance(item.value, Address) and item.value.buffer == name)
    return any(use is not None and use.writes and not use.opaque for use in uses)


def _is_said(subject: Subject, shape: tuple[int, ...], first: int) -> bool:
    """Whether the part before the element ``first`` has as many rows, or elements, as a scalar of the op says."""
    scalars = {value for value in subject.plan.scalars.values() if isinstance(value, int)}
    return any(first == value * prod(shape[axis:]) for value in scalars for axis in range(1, len(shape) + 1))


def _hardly_read(subjects: Sequence[Subject], touched: Touched) -> Iterator[Finding]:
    """An input is read, and not by half; nor are it certain rows, columns and the like, which a kernel may choose
    where no stride is 0, nor a diagonal, a band or a pattern in all rows and columns."""
    subject, buffer = subjects[0], touched.buffer
    if buffer.is_output or touched.read is None or touched.read_anywhere or not touched.reads:
        return
    if buffer.name in _begun(subject.plan):
        return  # a part of it is passed
    missing = touched.missing(touched.read)
    unread = int(missing.sum())
    chosen = _is_chosen(subject, ~missing, buffer.shape) and not any(stands_still(each, buffer) for each in subjects)
    if 2 * unread > buffer.size and not chosen:
        yield Finding(
            "input-hardly-read",
            f"of {buffer.size:,} elements of '{buffer.name}' {count(buffer.size - unread, 'element')} "
            f"{'is' if buffer.size - unread == 1 else 'are'} read; the first that no thread reads is "
            f"{_index(int(missing.argmax()), buffer.shape)}",
            Severity.WARNING,
            where=subject.key(subject.source_of(buffer)),
            hint="do the strides and bounds that are passed belong to it?",
        )


def _taken_apart(subject: Subject, touched: Touched) -> Iterator[Finding]:
    """Elements are not narrower to the kernel than they are: it goes on by parts of them, and ends half way."""
    buffer, seen = touched.buffer, touched.seen
    if not touched.pieces or seen is None:
        return
    taken, size = buffer.size - int(touched.missing(seen).sum()), buffer.dtype.size
    # As many pieces as there are elements, or most of them, one after the other.
    if buffer.size > 1 and buffer.size * touched.pieces // 2 < taken * size < buffer.size * touched.pieces + size:
        yield Finding(
            "buffer-dtype",
            f"'{_name(touched)}' has {buffer.size:,} elements of {buffer.dtype}, and the kernel goes through it by "
            f"{8 * touched.pieces} bits, to the end of {count(taken, 'element')}",
            Severity.WARNING,
            where=subject.key(subject.source_of(buffer)),
            hint=f"give '{buffer.name}' the dtype that the kernel takes, or pass the buffer that has it",
        )


def _begun(plan: Plan) -> set[str | None]:
    """The buffers that are passed from further on."""
    fields = (item.value for launch in plan.launches for argument in launch.args for item in argument.fields)
    return {value.buffer for value in fields if isinstance(value, Address) and value.offset}


def _axes(held: Array, shape: tuple[int, ...]) -> list[Array]:
    """Of each dimension the indices (bools) of which some element is ``held``, a flat array of bools."""
    box = held.reshape(shape)
    others = (tuple(other for other in range(box.ndim) if other != axis) for axis in range(box.ndim))
    return [box.any(axis=axes, keepdims=True).reshape(-1) for axes in others]


def _is_chosen(subject: Subject, held: Array, shape: tuple[int, ...]) -> bool:
    """Whether ``held``, a flat array of bools, is what a kernel may want of a tensor.

    That are all elements with certain indices in each dimension, if these do not merely end too soon in one other than
    the first, as they would by another one's bound (unless a scalar or a dim is passed that is no extent here, but says
    where; or it is the first alone and nothing is bounded by 1); and what has a part in all rows, columns and so on, as
    a diagonal has, or a triangle, in all but the first and the last. Small dims are the windows and steps of others.
    """
    axes = _axes(held, shape)
    long = [axis for axis in axes if len(axis) > 1]
    if len(long) > 1 and all(int(axis.sum()) >= len(axis) - (2 if len(axis) > _FEW else 0) for axis in long):
        return True
    if prod(int(axis.sum()) for axis in axes) != int(held.sum()):
        return False
    others = {extent for buffer in subject.plan.buffers for extent in buffer.shape} | {*subject.plan.scalars.values()}
    named = {item.value for argument, _, item, _ in subject.passed if subject.named(argument, item) is not None}
    named = {value for value in named if value in others or (isinstance(value, int) and value > _FEW)}
    ones = any(item.value == 1 and use is not None and (use.bound or use.loop) for _, _, item, use in subject.passed)
    passed = {*named, *(() if ones else (1,))} - {*shape}
    ends = [int(axis.sum()) for axis in axes[1:] if not axis.all() and axis[: int(axis.sum())].all()]
    return all(end in passed for end in ends)


def _short_of_bounds(subjects: Sequence[Subject], trace: Trace) -> Iterator[Finding]:
    """A bound that is passed, which the threads' indices never come to: the launch ends before the data do. Where all
    data are touched, or the bound is no extent of them, it bounds something else."""
    left = [touched.buffer for touched in trace.buffers.values() if not _is_done(touched)]
    extents = data_extents(left)
    for bound in filter(None, trace.bounds.values()):
        if bound.nearest < 0 and not extents.isdisjoint((bound.last, bound.last + 1)):
            subject = next(s for s in subjects if s.launch.index == bound.launch)
            passed = ", ".join(
                each.words for each in subject.passed if (each.slot.index, each.item.offset) in bound.units
            )
            yield Finding(
                "bound-not-reached",
                f"{which(subject)}argument {passed} bounds the kernel at index {bound.last:,}, and the threads get no "
                f"further than {bound.last + bound.nearest:,}",
                Severity.WARNING,
                where=subject.key("grid"),
                hint="are grid and block large enough, and does that argument count what they do?",
                note=f"the comparison is at {subject.place_of(bound.op)}: grid {triple(subject.launch.grid)} of blocks "
                f"{triple(subject.launch.block)}",
            )


def _is_done(touched: Touched) -> bool:
    """Whether the kernel has been everywhere in a buffer, or who knows where."""
    seen = touched.seen
    return seen is None or not touched.missing(seen).any()


def _idle_blocks(subjects: Sequence[Subject], trace: Trace) -> Iterator[Finding]:
    """Blocks of a grid that touch no memory."""
    for subject in subjects:
        busy = trace.busy.get(subject.launch.index)
        idle = 0 if busy is None else len(busy) - int(busy.sum())
        if busy is not None and 0 < idle < len(busy):
            yield Finding(
                "idle-blocks",
                f"{which(subject)}{idle:,} of {len(busy):,} blocks touch no buffer: they have nothing to do",
                Severity.NOTE,
                where=subject.key("grid"),
            )


# --- words -------------------------------------------------------------------------------------------------------


def _name(touched: Touched) -> str:
    return touched.buffer.output or touched.buffer.name


def _index(flat: int, shape: tuple[int, ...]) -> str:
    """A flat index as one in each dimension: ``[2, 17]``."""
    at = []
    for extent in reversed(shape):
        flat, inner = divmod(flat, extent)
        at.append(inner)
    return f"[{', '.join(map(str, reversed(at)))}]"
