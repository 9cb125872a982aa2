"""Rules on what the body does with the buffers it is given: outputs are written, inputs are not.

This is what names two swapped pointers. May import ``checks.subject``, ``checks.words`` and what these may.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from teenycli.checks.subject import Subject
from teenycli.checks.words import which
from teenycli.errors import Finding, Severity
from teenycli.launch.plan import Argument, Buffer, Plan
from teenycli.ptx.layout import Slot


def buffer_direction(subjects: Sequence[Subject]) -> Iterator[Finding]:
    """An output is written through some argument that points to it, in some launch; an input, unless it is an output in
    place, in none.

    Only what the body surely does counts: a pointer that is handed on, or reaches an instruction whose effect is not
    known here, is left alone.
    """
    if any(s.spec.origin.options or len(s.args) != len(s.visible) for s in subjects):
        return  # on the command line no buffer has a direction
    pointers = [(subject, *pointer) for subject in subjects for pointer in _pointers(subject)]
    written: dict[str, bool] = {}
    found: dict[tuple[str, str], Finding] = {}
    for subject, argument, slot, buffer in pointers:
        usage = subject.usages[slot.index]
        known = bool(usage.loads) and not usage.opaque
        written[buffer.name] = written.get(buffer.name, False) or usage.writes or not known
        if known and usage.writes and not buffer.is_output and buffer.role != "scratch":
            finding = _input_written(subject, argument, slot, buffer)
            found.setdefault((argument.source, buffer.name), finding)
    for subject, argument, slot, buffer in pointers:
        if buffer.is_output and not written[buffer.name]:
            finding = _output_not_written(subject, argument, slot, buffer)
            found.setdefault((argument.source, buffer.name), finding)
    yield from found.values()


def outputs_read(subjects: Sequence[Subject]) -> Iterator[Finding]:
    """No output that is written through one argument is read through another before it is."""
    if any(s.spec.origin.options for s in subjects):
        return
    pointers = [(subject, *pointer) for subject in subjects for pointer in _pointers(subject)]
    written = {buffer.name for subject, _, slot, buffer in pointers if not _reads_alone(subject, slot)}
    found: dict[tuple[str, str], Finding] = {}
    for subject, argument, slot, buffer in pointers:
        is_output = buffer.role == "output" and buffer.name in written
        if is_output and _reads_alone(subject, slot) and _is_new(subjects, subject, buffer):
            found.setdefault((argument.source, buffer.name), _output_read(subject, argument, slot, buffer))
    yield from found.values()


def _reads_alone(subject: Subject, slot: Slot) -> bool:
    usage = subject.usages[slot.index]
    return usage.reads and not usage.writes and not usage.opaque


def _is_new(subjects: Sequence[Subject], subject: Subject, buffer: Buffer) -> bool:
    """Whether no launch before this one is given the buffer, and nothing was said of what it holds at first."""
    begun = buffer.init is not None and not subject.plan.backward
    before = (s for s in subjects if s.launch.index < subject.launch.index)
    return not begun and not any(buffer.name in argument.buffers for s in before for argument in s.args)


def _input_written(subject: Subject, argument: Argument, slot: Slot, buffer: Buffer) -> Finding:
    return Finding(
        "input-written",
        f"{which(subject)}argument {argument.index} '{argument.name}' is the {buffer.role} '{buffer.name}', and the "
        f"kernel writes through parameter {slot.index}",
        where=subject.key(argument.source),
        hint=f'pass an output there, or say that it is one: output = {{ name = …, inout = "{buffer.name}" }}',
        note=subject.declared(slot),
    )


def _output_not_written(subject: Subject, argument: Argument, slot: Slot, buffer: Buffer) -> Finding:
    return Finding(
        "output-not-written",
        f"{which(subject)}argument {argument.index} '{argument.name}' is the output '{buffer.output or buffer.name}', "
        f"and the kernel only reads through parameter {slot.index}",
        where=subject.key(argument.source),
        hint="pass an input there",
        note=subject.declared(slot),
    )


def _output_read(subject: Subject, argument: Argument, slot: Slot, buffer: Buffer) -> Finding:
    return Finding(
        "output-read",
        f"{which(subject)}argument {argument.index} '{argument.name}' is the output '{buffer.output or buffer.name}', "
        f"and through parameter {slot.index} the kernel only reads: nothing is there yet",
        Severity.WARNING,
        where=subject.key(argument.source),
        hint="pass an input there",
        note=subject.declared(slot),
    )


def with_directions(subject: Subject) -> Plan:
    """The plan with each buffer's role from what the body does with it: for launches whose buffers say none."""
    kinds: dict[str, set[str]] = {}
    for passing in subject.passed:
        name = getattr(passing.item.value, "buffer", None)
        if name is not None and passing.use is not None:
            kinds.setdefault(name, set()).update(access.kind for access in passing.use.accesses)

    def directed(buffer: Buffer) -> Buffer:
        done = kinds.get(buffer.name, set())
        if not done & {"store", "atomic"}:
            return buffer
        return replace(buffer, role="output") if done <= {"store", "hint"} else replace(buffer, output=buffer.name)

    return replace(subject.plan, buffers=tuple(directed(buffer) for buffer in subject.plan.buffers))


def _pointers(subject: Subject) -> Iterator[tuple[Argument, Slot, Buffer]]:
    """Arguments that are a pointer, with their parameters and buffers."""
    for argument, slot in zip(subject.args, subject.visible, strict=True):
        address = argument.address
        if address is not None and address.buffer is not None and subject.usages[slot.index].address:
            yield argument, slot, subject.plan.buffer(address.buffer)
