"""Rules on what the launches touch: nothing outside of buffers, all of each output, each element by one block.

They rest on the ``footprint``: what addresses the body makes for the threads of these launches. What hangs on data is
left alone, but for integers of which the op says what an input holds: these may be indices. May import
``checks.subject``, ``checks.strides``, ``checks.words``, ``footprint``, ``tensors``, and what these may.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from teenycli.checks.strides import stands_still
from teenycli.checks.subject import Passing, Subject
from teenycli.checks.words import count, triple, which
from teenycli.errors import Finding, Place, Severity
from teenycli.launch.plan import Address, Argument, Buffer, Plan

if TYPE_CHECKING:
    from teenycli.footprint import Miss, Touched, Trace
    from teenycli.footprint.lanes import Array

#: Bytes of an input up to which what it holds is looked at.
_MOST_INDICES = 1 << 22


def traced(subjects: Sequence[Subject], work: int, contents: Mapping[str, Array]) -> Trace:
    """What the launches touch; ``work`` is how many operations on lanes it may take, ``contents`` are those of
    :func:`indices`. Raises what parsing the body raises."""
    from teenycli.footprint import footprint_of

    subject = subjects[0]
    return footprint_of(subject.plan, subject.compiled.survey, work, contents)


def indices(subject: Subject) -> dict[str, Array]:
    """The bytes of inputs that may be indices: of integers, not changed, of which the op says what they hold."""
    from teenycli.errors import TeenyError
    from teenycli.tensors.arrays import fill

    plan, found, changed = subject.plan, {}, _changed(subject)
    for buffer in plan.buffers:
        told = buffer.role in ("input", "param") and buffer.init not in (None, "random") and buffer.name not in changed
        if not told or buffer.is_output or buffer.dtype.is_float or buffer.is_padded or buffer.nbytes > _MOST_INDICES:
            continue
        names = {**plan.consts, **plan.scalars, **plan.case}
        assert buffer.init is not None
        try:
            array = fill(buffer.init, buffer.dtype, buffer.shape, buffer.name, 0, subject.spec.folder, names)
        except TeenyError:
            continue  # another rule's affair
        found[buffer.name] = array.reshape(-1).view("u1")
    return found


def _changed(subject: Subject) -> set[str | None]:
    """The buffers through whose addresses the body writes, or may."""
    uses = ((item.value, use) for _, _, item, use in subject.passed)
    return {to.buffer for to, use in uses if isinstance(to, Address) and (use is None or use.writes or use.opaque)}


def memory(subjects: Sequence[Subject], trace: Trace, largest: Collection[str]) -> Iterator[Finding]:
    """Accesses that miss, elements of outputs that no thread writes or two blocks do, inputs that are hardly read,
    blocks that do nothing.

    ``largest`` are the inputs of which no other case has more: a kernel may well see little of a small one, where
    edges are all there is.
    """
    yield from _misses(subjects, trace)
    if any(miss.problem in ("bounds", "null") for miss in trace.misses.values()):
        return  # where accesses go astray, what is covered says nothing new
    found = [finding for touched in trace.buffers.values() for finding in _of_buffer(subjects, trace, touched, largest)]
    yield from found
    if trace.complete and not found:
        yield from _short_of_bounds(subjects, trace)
    if trace.complete:
        yield from _idle_blocks(subjects, trace)


def _of_buffer(
    subjects: Sequence[Subject], trace: Trace, touched: Touched, largest: Collection[str]
) -> Iterator[Finding]:  # fmt: skip
    """What is wrong with what was touched of one buffer."""
    subject, is_largest = subjects[0], touched.buffer.name in largest
    yield from _overlap(subject, touched)
    yield from _not_begun(subject, touched)
    if trace.complete:
        yield from _coverage(subject, touched, whole=is_largest)
        yield from _taken_apart(subject, touched)
        if is_largest and not trace.guided:  # indices choose what is read
            yield from _hardly_read(subjects, touched)


def largest_inputs(plans: Sequence[Plan]) -> list[frozenset[str]]:
    """Of each of the plans of an op, at its cases, the inputs that it has most of: of each input one plan at least."""
    best: dict[str, tuple[tuple[int, int], int]] = {}
    for index, plan in enumerate(plans):
        total = sum(buffer.nbytes for buffer in plan.buffers)
        for buffer in plan.buffers:
            measure = buffer.size, total
            if buffer.role in ("input", "param") and (buffer.name not in best or measure > best[buffer.name][0]):
                best[buffer.name] = measure, index
    return [frozenset(name for name, (_, at) in best.items() if at == index) for index in range(len(plans))]


# --- accesses ----------------------------------------------------------------------------------------------------


def _misses(subjects: Sequence[Subject], trace: Trace) -> Iterator[Finding]:
    """The first access of each kind to each buffer."""
    seen = set()
    for miss in trace.misses.values():
        key = miss.problem, miss.buffer, miss.writes and miss.problem != "shared"
        if key not in seen:
            seen.add(key)
            subject = next(s for s in subjects if s.launch.index == miss.launch)
            yield _missed(subject, miss)


def _missed(subject: Subject, miss: Miss) -> Finding:
    does = "writes" if miss.writes else "reads"
    thread = f"thread {triple(miss.thread)} of block {triple(miss.block)}"
    who = f"{which(subject)}{thread} {does} {count(miss.size, 'byte')}"
    more = f" ({count(miss.threads - 1, 'more thread')} at that instruction)" if miss.threads > 1 else ""
    if miss.problem == "null":
        return _finding(subject, miss, "access-null", f"{who} at address {miss.offset:#x}, near null{more}",
                        "args", "pass a buffer there, or the scalar that the kernel tests before it")  # fmt: skip
    if miss.problem == "shared":
        have = subject.static_shared + subject.launch.shared
        dynamic = f" ({subject.launch.shared:,} of them dynamic)" if subject.launch.shared else ""
        message = f"{who} at byte {miss.offset:,} of shared memory, of which a block has {have:,}{dynamic}{more}"
        least = miss.end - subject.static_shared
        hint = f"shared = {least}, or more: so far the instruction reaches" if miss.offset >= 0 else None
        return _finding(subject, miss, "shared-outside", message, "shared", hint)
    if miss.buffer is None:
        message = f"{who} at an address that is far from every buffer{more}"
        return _finding(subject, miss, "access-outside", message, "args", _WRAPPED)
    buffer = subject.plan.buffer(miss.buffer)
    source = _argument_to(subject, buffer)
    if miss.problem == "misaligned":
        message = f"{who} at byte {miss.offset:,} of '{buffer.name}', no multiple of {miss.size}{more}"
        hint = f"strides and offsets of '{buffer.name}' in bytes must be multiples of {miss.size}: align(…) rounds up"
        return _finding(subject, miss, "access-misaligned", message, source, hint)
    message = f"{who} at byte {miss.offset:,} of '{buffer.name}', which has {buffer.nbytes:,}{more}"
    hint = _WRAPPED if miss.offset < -(2**31) or miss.offset >= 2**32 else (
        "do the sizes, strides, grid and block that are passed belong to "
        f"{buffer.dtype}[{', '.join(map(str, buffer.shape))}]?"
    )  # fmt: skip
    return _finding(subject, miss, "access-outside", message, source, hint)


_WRAPPED = "an index of 32 bits wraps at 2**31: pass smaller dims, or let the kernel compute it in 64 bits"


def _finding(subject: Subject, miss: Miss, id: str, message: str, source: str, hint: str | None) -> Finding:
    at = Place(subject.module.source.name, miss.op.at.line, miss.op.at.column)
    return Finding(id, message, where=subject.key(source), hint=hint, note=f"the instruction is at {at}")


def _argument_to(subject: Subject, buffer: Buffer) -> str:
    """The key of the argument that points to ``buffer``."""
    return next((a.source for a in subject.args if buffer.name in _buffers_of(a)), "args")


def _buffers_of(argument: Argument) -> list[str | None]:
    return [item.value.buffer for item in argument.fields if isinstance(item.value, Address)]


# --- coverage ----------------------------------------------------------------------------------------------------


def _overlap(subject: Subject, touched: Touched) -> Iterator[Finding]:
    """No element of an output is stored by two blocks; nor by two launches, unless they go over what is there again."""
    contested = int(touched.contested.sum()) if touched.contested is not None else 0
    if contested and not (touched.reads and len(subject.plan.launches) > 1):
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


def _coverage(subject: Subject, touched: Touched, *, whole: bool) -> Iterator[Finding]:
    """An output is written from end to end, unless something is to be there before or is added to.

    In place a part may well be meant, as a cache that grows by a row; what is updated should be so up to its end, where
    a kernel has ``whole`` blocks to do.
    """
    buffer = touched.buffer
    in_place = buffer.role != "output"
    begun = buffer.init is not None and not subject.plan.backward
    if not buffer.is_output or touched.written is None or touched.written_anywhere or not touched.writes:
        return
    if touched.updates or (begun and not in_place):
        return
    missing = touched.missing(touched.written)
    unwritten = int(missing.sum())
    first = int(missing.argmax()) if unwritten else 0
    at_end = first + unwritten == buffer.size
    if not unwritten or (in_place and not (touched.reads and at_end and whole)):
        return
    yield Finding(
        "output-not-covered",
        f"no thread writes {unwritten:,} of {buffer.size:,} elements of '{_name(touched)}', "
        f"the first at {_index(first, buffer.shape)}{': they stay as they were' if in_place else ''}",
        Severity.WARNING if in_place else Severity.ERROR,
        where=subject.key("grid" if at_end else buffer.source),
        hint="does the grid cover the output?" + ("" if in_place else ' What is zero elsewhere wants init = "zeros"'),
        note=f"grid {triple(subject.launch.grid)} of blocks {triple(subject.launch.block)}",
    )


def _hardly_read(subjects: Sequence[Subject], touched: Touched) -> Iterator[Finding]:
    """An input is read, and not by half; nor are it certain rows, columns and the like, which a kernel may choose
    where no stride is 0."""
    subject, buffer = subjects[0], touched.buffer
    if buffer.is_output or touched.read is None or touched.read_anywhere or not touched.reads:
        return
    if buffer.name in _begun(subject.plan):
        return  # a part of it is passed
    missing = touched.missing(touched.read)
    unread = int(missing.sum())
    chosen = _is_chosen(~missing, buffer.shape) and not any(stands_still(each, buffer) for each in subjects)
    if 2 * unread > buffer.size and not chosen:
        yield Finding(
            "input-hardly-read",
            f"of {buffer.size:,} elements of '{buffer.name}' {count(buffer.size - unread, 'element')} "
            f"{'is' if buffer.size - unread == 1 else 'are'} read; the first that no thread reads is "
            f"{_index(int(missing.argmax()), buffer.shape)}",
            Severity.WARNING,
            where=subject.key(_argument_to(subject, buffer)),
            hint="do the strides and bounds that are passed belong to it?",
        )


def _taken_apart(subject: Subject, touched: Touched) -> Iterator[Finding]:
    """Elements are not narrower to the kernel than they are: it goes on by parts of them, and ends half way."""
    buffer, read, written = touched.buffer, touched.read, touched.written
    if not touched.pieces or read is None or written is None or touched.read_anywhere or touched.written_anywhere:
        return
    taken = buffer.size - int(touched.missing(read | written).sum())
    if 2 * taken <= buffer.size + 1 < 2 * buffer.size:
        yield Finding(
            "buffer-dtype",
            f"'{_name(touched)}' has {buffer.size:,} elements of {buffer.dtype}, and the kernel goes through it by "
            f"{8 * touched.pieces} bits, to the end of {count(taken, 'element')}",
            Severity.WARNING,
            where=subject.key(_argument_to(subject, buffer)),
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


def _is_slice(held: Array, shape: tuple[int, ...]) -> bool:
    """Whether ``held`` are all elements with certain indices in each dimension."""
    return prod(int(axis.sum()) for axis in _axes(held, shape)) == int(held.sum())


def _is_chosen(held: Array, shape: tuple[int, ...]) -> bool:
    """Whether ``held`` is a slice that does not merely end too soon in a dimension other than the first, as it would
    by another one's bound."""
    return _is_slice(held, shape) and all(
        axis.all() or not axis[: int(axis.sum())].all() for axis in _axes(held, shape)[1:]
    )


def _short_of_bounds(subjects: Sequence[Subject], trace: Trace) -> Iterator[Finding]:
    """A bound that is passed, which the threads' indices never come to: the launch ends before the data do. Where all
    data are touched, or the bound is beyond all buffers, it bounds something else."""
    most = max((touched.buffer.size for touched in trace.buffers.values() if not _is_done(touched)), default=0)
    for bound in filter(None, trace.bounds.values()):
        if bound.nearest < 0 and bound.last < most:
            subject = next(s for s in subjects if s.launch.index == bound.launch)
            passed = ", ".join(
                _named(each) for each in subject.passed if (each.slot.index, each.item.offset) in bound.units
            )
            at = Place(subject.module.source.name, bound.op.at.line, bound.op.at.column)
            yield Finding(
                "bound-not-reached",
                f"{which(subject)}argument {passed} bounds the kernel at index {bound.last:,}, and the threads get no "
                f"further than {bound.last + bound.nearest:,}",
                Severity.WARNING,
                where=subject.key("grid"),
                hint="are grid and block large enough, and does that argument count what they do?",
                note=f"the comparison is at {at}: grid {triple(subject.launch.grid)} of blocks "
                f"{triple(subject.launch.block)}",
            )


def _named(passing: Passing) -> str:
    """``3 'N'``, of a struct with the place of the member."""
    argument, offset = passing.argument, passing.item.offset
    return f"{argument.index} '{argument.name}'" + (f" at byte {offset}" if len(argument.fields) > 1 else "")


def _is_done(touched: Touched) -> bool:
    """Whether the kernel has been everywhere in a buffer, or who knows where."""
    if touched.read is None or touched.written is None or touched.read_anywhere or touched.written_anywhere:
        return True
    return not touched.missing(touched.read | touched.written).any()


def _idle_blocks(subjects: Sequence[Subject], trace: Trace) -> Iterator[Finding]:
    """Blocks of a grid that touch no memory."""
    for subject in subjects:
        busy = trace.busy.get(subject.launch.index)
        idle = 0 if busy is None else len(busy) - int(busy.sum())
        if busy is not None and 0 < idle < len(busy):
            yield Finding(
                "idle-blocks",
                f"{which(subject)}{idle:,} of {len(busy):,} blocks touch no buffer: the grid is larger than it need be",
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
