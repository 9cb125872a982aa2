"""Findings and errors as text: a block with the source line and a caret, or one line for a pipe.

May import ``errors``, ``explain`` and, in this room, ``layout`` and ``text``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from teenycli.errors import Finding, Severity
from teenycli.report.layout import Excerpt, Item, lay_out
from teenycli.report.text import Line, Span, line, plain, visible

_STYLES = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.NOTE: "note"}


def problem(finding: Finding) -> list[Item]:
    """A finding as a block: what, where, the line there with a caret, the cure."""
    head, *more = finding.message.split("\n")
    items: list[Item] = [
        line(_label(finding), ": ", Span(visible(head), "title")),
        *(line("  ", visible(row)) for row in more),
    ]
    if finding.where is not None:
        if str(finding.where):
            items.append(line("  ", Span("at ", "dim"), visible(str(finding.where))))
        if finding.where.text is not None and finding.where.text.strip():
            items.append(Excerpt(finding.where.line, finding.where.text, finding.where.column))
    for word, text in (("hint", finding.hint), ("note", finding.note)):
        if text:
            first, *rest = text.split("\n")
            items.append(line("  ", Span(f"{word}: ", "good" if word == "hint" else "note"), visible(first)))
            items += [line("        ", visible(row)) for row in rest]
    return items


def problem_line(finding: Finding) -> Line:
    """A finding on one line, the place first, as compilers write it."""
    place = line(visible(str(finding.where)), ": ") if finding.where is not None and str(finding.where) else ()
    hint = line(Span(" (hint: ", "dim"), _flat(finding.hint), Span(")", "dim")) if finding.hint else ()
    return line(place, _label(finding), ": ", _flat(finding.message), hint)


def closing(findings: Iterable[Finding]) -> list[Item]:
    """A line with the command that explains ``findings``: those about launches and kernels, which take explaining."""
    from teenycli.explain import groups

    ids = dict.fromkeys(finding.id for finding in findings if groups().get(finding.id) in ("check", "fault"))
    return [line(Span(f"teeny explain {' '.join(ids)}", "dim"))] if ids else []


def problem_lines(finding: Finding) -> list[str]:
    """``problem`` as plain text."""
    return [plain(row) for row in lay_out(problem(finding), None)]


def tally(findings: Iterable[Finding]) -> str:
    """``2 errors, 1 warning``; ``no problems`` when there are none."""
    counts = dict.fromkeys(Severity, 0)
    for finding in findings:
        counts[finding.severity] += 1
    said = [f"{count} {severity}{'' if count == 1 else 's'}" for severity, count in counts.items() if count]
    return ", ".join(said) or "no problems"


def worst(findings: Sequence[Finding]) -> Severity | None:
    """The severity of the gravest of ``findings``."""
    return next((severity for severity in Severity if any(f.severity is severity for f in findings)), None)


def _label(finding: Finding) -> Line:
    return line(Span(f"{finding.severity}[{finding.id}]", _STYLES[finding.severity]))


def _flat(text: str) -> str:
    return visible(" ".join(text.split()))
