"""Rules on what the launches touch: nothing outside of buffers, all of each output, each element by one block.

They rest on the ``footprint``: what addresses the body makes for the threads of these launches. What hangs on data is
left alone. May import ``checks.subject``, ``footprint``, and what these may.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from teenycli.checks.subject import Subject
from teenycli.errors import Finding, Place, Severity
from teenycli.launch.plan import Address, Argument, Buffer, Plan

if TYPE_CHECKING:
    from teenycli.footprint import Miss, Touched, Trace


def traced(subjects: Sequence[Subject], work: int) -> Trace:
    """What the launches touch; ``work`` is how many operations on lanes it may take. Raises what parsing the body
    raises."""
    from teenycli.footprint import footprint_of

    subject = subjects[0]
    return footprint_of(subject.plan, subject.module, subject.entry, subject.slots, work)


def memory(subjects: Sequence[Subject], trace: Trace, largest: Collection[str]) -> Iterator[Finding]:
    """Accesses that miss, elements of outputs that no thread writes or two blocks do, inputs that are hardly read,
    blocks that do nothing.

    ``largest`` are the inputs of which no other case has more: a kernel may well see little of a small one, where
    edges are all there is.
    """
    subject = subjects[0]
    yield from _misses(subjects, trace)
    if any(miss.problem in ("bounds", "null") for miss in trace.misses.values()):
        return  # where accesses go astray, what is covered says nothing new
    for touched in trace.buffers.values():
        yield from _overlap(subject, touched)
        if trace.complete:
            is_largest = touched.buffer.name in largest
            yield from _coverage(subject, touched, whole=is_largest)
            if is_largest:
                yield from _hardly_read(subject, touched)
    if trace.complete:
        yield from _idle_blocks(subjects, trace)


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
    who = (
        f"{_in(subject)}thread {_triple(miss.thread)} of block {_triple(miss.block)} {does} {_count(miss.size, 'byte')}"
    )
    more = f" ({_count(miss.threads - 1, 'more thread')} at that instruction)" if miss.threads > 1 else ""
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
            f"{_count(contested, 'element')} of '{_name(touched)}' {'is' if contested == 1 else 'are'} written by more "
            "than one block: the last one wins",
            Severity.WARNING,
            where=subject.key(touched.buffer.source),
            hint="do strides, grid and block belong together? What several blocks add to wants atomics",
        )


def _coverage(subject: Subject, touched: Touched, *, whole: bool) -> Iterator[Finding]:
    """An output is written from end to end, unless something is to be there before or is added to. What is changed in
    place may well be a part; its end should be, though, where a kernel has ``whole`` blocks to do."""
    buffer = touched.buffer
    in_place = buffer.role != "output"
    begun = buffer.init is not None and not subject.plan.backward
    if not buffer.is_output or touched.written is None or touched.written_anywhere or not touched.writes:
        return
    if touched.updates or (begun and not in_place):
        return
    missing = touched.missing(touched.written)
    unwritten = int(missing.sum())
    if not unwritten:
        return
    first = int(missing.argmax())
    at_end = first + unwritten == buffer.size
    if in_place and not (at_end and whole):
        return
    yield Finding(
        "output-not-covered",
        f"no thread writes {unwritten:,} of {buffer.size:,} elements of '{_name(touched)}', "
        f"the first at {_index(first, buffer.shape)}{': they stay as they were' if in_place else ''}",
        Severity.WARNING if in_place else Severity.ERROR,
        where=subject.key("grid" if at_end else buffer.source),
        hint='does the grid cover the output? A kernel that only adds to it wants init = "zeros"',
        note=f"grid {_triple(subject.launch.grid)} of blocks {_triple(subject.launch.block)}",
    )


def _hardly_read(subject: Subject, touched: Touched) -> Iterator[Finding]:
    """An input is read, and a third of it at least."""
    buffer = touched.buffer
    if buffer.is_output or touched.read is None or touched.read_anywhere or not touched.reads:
        return
    missing = touched.missing(touched.read)
    unread = int(missing.sum())
    if 3 * (buffer.size - unread) < buffer.size:
        yield Finding(
            "input-hardly-read",
            f"of {buffer.size:,} elements of '{buffer.name}' {_count(buffer.size - unread, 'element')} "
            f"{'is' if buffer.size - unread == 1 else 'are'} read; the first that no thread reads is "
            f"{_index(int(missing.argmax()), buffer.shape)}",
            Severity.WARNING,
            where=subject.key(_argument_to(subject, buffer)),
            hint="do the strides and bounds that are passed belong to it?",
        )


def _idle_blocks(subjects: Sequence[Subject], trace: Trace) -> Iterator[Finding]:
    """Blocks of a grid that touch no memory."""
    for subject in subjects:
        busy = trace.busy.get(subject.launch.index)
        idle = 0 if busy is None else len(busy) - int(busy.sum())
        if busy is not None and 0 < idle < len(busy):
            yield Finding(
                "idle-blocks",
                f"{_in(subject)}{idle:,} of {len(busy):,} blocks touch no buffer: the grid is larger than it need be",
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


def _triple(values: tuple[int, int, int]) -> str:
    return f"({', '.join(map(str, values))})"


def _count(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _in(subject: Subject) -> str:
    return f"launch {subject.launch.index}: " if len(subject.plan.launches) > 1 else ""
