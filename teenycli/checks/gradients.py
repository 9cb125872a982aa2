"""Rules on what a backward leaves undone. May import ``checks.subject`` and what it may."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from teenycli.checks.subject import Subject
from teenycli.errors import Finding, Severity
from teenycli.manifest.spec import grad_name


def gradients_asked_for(subjects: Sequence[Subject]) -> Iterator[Finding]:
    """Every input and param of floats has its gradient among the arguments: a note, since some have none to give."""
    subject = subjects[0]
    if not subject.plan.backward:
        return
    known = {buffer.name for buffer in subject.plan.buffers}
    for role, buffers in (("inputs", subject.spec.inputs), ("params", subject.spec.params)):
        for k, buffer in enumerate(buffers):
            if subject.plan.buffer(buffer.name).dtype.is_float and grad_name(buffer.name) not in known:
                yield Finding(
                    "gradient-not-asked-for",
                    f"no argument points to grad_{role}[{k}]: the gradient of '{buffer.name}' stays zero",
                    Severity.NOTE,
                    where=subject.key("args"),
                    hint="right for what is not trained; an ignore entry says so",
                )
