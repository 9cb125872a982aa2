"""Which two arguments, exchanged, would leave nothing to find: what looks like a swap.

Knows no rule: it is given what to ask. May import ``checks.subject`` and what it may.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, islice

from msgspec.structs import replace

from teenycli.checks.subject import Subject
from teenycli.errors import Finding, Severity
from teenycli.launch.plan import Argument

#: Most launches that are looked at with two arguments exchanged.
_TRIES = 200
#: More than this many exchanges that fit say nothing.
_ANSWERS = 2

#: What is wrong with launches; None where that cannot be told.
Ask = Callable[[Sequence[Subject]], list[Finding] | None]


def with_swaps(
    subjects: Sequence[Subject], found: list[Finding], ask: Ask, confirm: Ask | None = None, tries: int = _TRIES
) -> list[Finding]:
    """``found``, what ``ask`` finds in the launches, with a hint where two arguments look swapped.

    They do where all errors and warnings are gone once they are exchanged, in every launch, and where ``confirm``,
    which may take longer, has none either. ``tries`` is how many launches are looked at with two arguments exchanged.
    """
    if not any(_counts(finding) for finding in found):
        return found
    fitting = []
    for one, other in islice(_pairs(subjects), min(tries, _TRIES) // len(subjects)):
        exchanged = _in_one_plan([_exchanged(subject, one, other) for subject in subjects])
        asked = ask(exchanged)
        if asked is not None and not any(_counts(finding) for finding in asked):
            fitting.append((one, other, exchanged))
    if not 1 <= len(fitting) <= _ANSWERS:
        return found
    confirmed = [(one, other) for one, other, exchanged in fitting if _is_clean(exchanged, confirm)]
    if not confirmed:
        return found
    hint = " or ".join(_words(subjects[0].args, *pair) for pair in confirmed)
    return [finding.but(hint=hint) if _counts(finding) else finding for finding in found]


def _is_clean(exchanged: Sequence[Subject], confirm: Ask | None) -> bool:
    asked = [] if confirm is None else confirm(exchanged)
    return asked is None or not any(_counts(finding) for finding in asked)


def _counts(finding: Finding) -> bool:
    return finding.severity is not Severity.NOTE


def _pairs(subjects: Sequence[Subject]) -> list[tuple[int, int]]:
    """Places of arguments that are not the same in all launches, those of one size first."""
    several = [subject.args for subject in subjects]
    pairs = combinations(range(min(map(len, several))), 2)
    differing = [(one, other) for one, other in pairs if any(a[one].fields != a[other].fields for a in several)]
    return sorted(differing, key=lambda pair: several[0][pair[0]].size != several[0][pair[1]].size)


def _exchanged(subject: Subject, one: int, other: int) -> Subject:
    """The launch with two arguments exchanged, each as the user numbers and names it, at the other's parameter."""
    args = list(subject.launch.args)
    first, second = args[one], args[other]
    args[one], args[other] = replace(second, offset=first.offset), replace(first, offset=second.offset)
    launch = replace(subject.launch, args=tuple(args))
    return replace(subject, launch=launch)


def _in_one_plan(subjects: Sequence[Subject]) -> list[Subject]:
    """The subjects of one plan, with its launches now as theirs are."""
    plan = replace(subjects[0].plan, launches=tuple(subject.launch for subject in subjects))
    return [replace(subject, plan=plan) for subject in subjects]


def _words(args: Sequence[Argument], one: int, other: int) -> str:
    order = list(args)
    order[one], order[other] = order[other], order[one]
    shown = ", ".join(f"{argument.kind} {argument.name}" for argument in order)
    return f"arguments {one} and {other} look swapped: ({shown}) fits"
