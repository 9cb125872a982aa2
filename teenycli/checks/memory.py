"""Rules on what the launches touch: nothing outside of buffers, all of each output, each element by one block.

They rest on the ``footprint``: what addresses the body makes for the threads of these launches. What hangs on data is
left alone, but for integers of which the op says what an input holds: these may be indices. May import
``checks.subject``, ``checks.strides``, ``checks.words``, ``footprint``, ``tensors``, and what these may.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from teenycli.checks.buffers import null_pointers
from teenycli.checks.coverage import coverage
from teenycli.checks.subject import Subject
from teenycli.checks.words import count, triple, which
from teenycli.errors import Finding
from teenycli.launch.plan import Address, Plan

if TYPE_CHECKING:
    from teenycli.footprint import Miss, Trace
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
    doubtful = trace.doubtful if trace.complete else -1
    yield from dict.fromkeys(finding for each in subjects for finding in null_pointers(each, doubtful))
    yield from coverage(subjects, trace, largest)


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
        if hint and not subject.launch.shared and not subject.compiled.has_dynamic_shared:
            hint = "the kernel declares no dynamic shared memory, so 'shared' cannot help: an index leaves its array"
        return _finding(subject, miss, "shared-outside", message, "shared", hint)
    if miss.buffer is None:
        message = f"{who} at an address that is far from every buffer{more}"
        return _finding(subject, miss, "access-outside", message, "args", _WRAPPED)
    buffer = subject.plan.buffer(miss.buffer)
    source = subject.source_of(buffer)
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
    note = f"the instruction is at {subject.place_of(miss.op)}"
    return Finding(id, message, where=subject.key(source), hint=hint, note=note)
