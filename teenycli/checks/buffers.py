"""Rules on which buffers and parameters an op leaves out: a buffer that no argument points to, a parameter that nothing
reads.

May import ``checks.subject``, ``checks.words`` and what these may.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from teenycli.checks.subject import Subject
from teenycli.checks.words import twice
from teenycli.errors import Finding, Severity
from teenycli.launch.plan import Address, Buffer
from teenycli.manifest.spec import grad_name


def unused_buffers(subjects: Sequence[Subject]) -> Iterator[Finding]:
    """Every buffer is one that some argument of some launch points to, and an output one through which the body may
    write.

    Of a backward only ``grad_output`` has to be: which buffers of the forward it needs is for its author to know.
    """
    subject = subjects[0]
    named: set[str] = set()
    used: set[str] = set()
    for each in subjects:
        for argument, slot in zip(each.args, each.visible, strict=True):
            names = set(argument.buffers)
            named |= names
            used |= set() if each.usages[slot.index].unused else names
    for buffer in subject.plan.buffers:
        if buffer.role == "scratch" or (subject.plan.backward and buffer.name != grad_name("output")):
            continue
        if buffer.name not in (used if buffer.is_output else named):
            yield _unused(subjects, buffer, buffer.name in named)


def _unused(subjects: Sequence[Subject], buffer: Buffer, named: bool) -> Finding:
    role, name = ("output", buffer.output or buffer.name) if buffer.is_output else (buffer.role, buffer.name)
    message = f"no argument points to the {role} '{name}'"
    if named:
        message = f"the {role} '{name}' is passed only for parameters that the kernel never reads"
    elif buffer.is_output:
        message += ": nothing can write it"
    return Finding(
        "buffer-unused",
        message,
        Severity.ERROR if buffer.is_output else Severity.WARNING,
        where=subjects[0].key(buffer.source),
        hint=_repeated(subjects),
    )


def _repeated(subjects: Sequence[Subject]) -> str | None:
    """Which arguments point to the same place, one of them perhaps instead of the buffer that is left out."""
    for subject in subjects:
        addresses = ((argument.address, argument) for argument in subject.args)
        found = twice((to, argument) for to, argument in addresses if to is not None and to.buffer is not None)
        if found is not None:
            one, other, address = found
            return f"arguments {one.index} and {other.index} both point to '{address.buffer}'"
    return None


def unused_parameters(subject: Subject) -> Iterator[Finding]:
    """A note on the parameters that the body never reads, but for those that nothing is passed for: zero or null."""
    unused = [
        (argument, slot)
        for argument, slot in zip(subject.args, subject.visible, strict=True)
        if subject.usages[slot.index].unused and not all(_is_nothing(item.value) for item in argument.fields)
    ]
    if unused:
        names = ", ".join(f"{argument.index} '{argument.name}'" for argument, _ in unused)
        several = len(unused) > 1
        yield Finding(
            "unused-parameter",
            f"the kernel never reads the parameter{'s' if several else ''} of argument{'s' if several else ''} {names}",
            Severity.NOTE,
            where=subject.key(unused[0][0].source),
            hint="right where the compiler had no use for it; an ignore entry says so",
            note=subject.declared(unused[0][1]),
        )


def null_pointers(subject: Subject, doubtful: int) -> Iterator[Finding]:
    """Null is passed only where the kernel asks for it before it goes there, or never does.

    A pointer that nothing is compared with may still be looked at only where a flag says so: ``doubtful`` are the
    parameters (bits) through which it is not known whether anything is accessed. What surely is, is told by itself.
    """
    for passing in subject.passed:
        argument, slot, item, use = passing
        if item.value != Address() or use is None or not (use.reads or use.writes) or not doubtful >> slot.index & 1:
            continue
        if not (use.bound or use.guard or use.escaped):
            yield Finding(
                "access-null",
                f"argument {passing.words} is null, and through parameter {slot.index} the "
                f"kernel {'writes' if use.writes else 'reads'} without comparing it",
                Severity.WARNING,
                where=subject.key(argument.source),
                hint="pass a buffer there",
                note=subject.declared(slot),
            )


def _is_nothing(value: object) -> bool:
    return not any(value) if isinstance(value, bytes) else value in (0, Address())
