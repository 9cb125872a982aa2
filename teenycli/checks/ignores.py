"""What an op's ``ignore`` says that it need not, or cannot.

May import ``errors``, ``explain`` and ``manifest``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from teenycli.errors import Finding, Severity, did_you_mean
from teenycli.explain import groups, matching
from teenycli.manifest.spec import OpSpec, quote

_OWN = ("unused-ignore", "unknown-id")


def idle_ignores(spec: OpSpec, matched: Collection[str], *, probed: bool = False) -> Iterator[Finding]:
    """A warning for each entry of ``ignore`` that took nothing away in any case; ``matched`` are the ids that some did.

    An entry for one of these warnings themselves takes it away, and is no idle one. Nor is one for what check never
    looks for: a run may find it, or ``--probe`` where the op was not ``probed``.
    """
    unsought = () if probed else ("not-probed", *matching("probe", groups()))
    for id in spec.ignore:
        where = spec.origin.place(f"ignore.{quote(id)}")
        if id not in groups() and "unknown-id" not in spec.ignore:
            hint = did_you_mean(id, groups()) or "'teeny explain' lists all"
            yield Finding("unknown-id", f"'{id}' is ignored, and no finding has that id", Severity.WARNING, where, hint)
        elif (
            groups().get(id) == "check"
            and id not in (*matched, *unsought, *_OWN)
            and "unused-ignore" not in spec.ignore
        ):
            message = f"'{id}' is ignored, and no case of the op has that finding"
            yield Finding("unused-ignore", message, Severity.WARNING, where, "take it out of 'ignore'")
