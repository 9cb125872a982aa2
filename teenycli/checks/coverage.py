"""What of an op the rules do not look at yet, so that silence about it is not taken for approval.

May import ``checks.subject`` and what it may.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from teenycli.checks.subject import Subject
from teenycli.errors import Finding, Severity


def not_looked_at(subjects: Sequence[Subject]) -> Iterator[Finding]:
    """The op's backward table."""
    subject = subjects[0]
    if subject.spec.backward is not None:
        yield Finding(
            "not-checked",
            "the backward table is neither checked nor run yet; this is about the forward launch",
            Severity.NOTE,
            where=subject.key("backward"),
        )
