"""What the rules found, op by op.

May import ``rows``, ``layout``, ``numbers``, ``problems`` and ``text`` of this room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from teenycli.errors import Finding, Severity
from teenycli.report.layout import Item
from teenycli.report.numbers import case, count
from teenycli.report.problems import closing, problem, problem_line, tally, worst
from teenycli.report.rows import CheckRow
from teenycli.report.text import Line, Span, line, visible

_VERDICTS = {None: "good", Severity.NOTE: "note", Severity.WARNING: "warn", Severity.ERROR: "bad"}


#: An op, what was found in it, and what of it the op ignores, with the reasons.
_Found = tuple[str, tuple[Finding, ...], tuple[tuple[Finding, str], ...]]


def check_page(rows: Iterable[CheckRow], *, brief: bool = False, ignored: bool = False) -> Iterator[Item]:
    """A line for each op and case with what was found; under it the findings, in full or, ``brief``, a line each.

    Cases of an op with the same findings share a line. Where findings are in full, the last line is the command that
    explains them. What the op ignores is there when it is asked for.
    """
    said: list[Finding] = []
    for (op, findings, silent), cases in _grouped(rows, ignored).items():
        yield _verdict(op, findings, cases)
        for finding in findings:
            if brief:
                yield problem_line(finding)
            else:
                yield from problem(finding)
        for finding, reason in silent:
            yield line(Span(f"  ignored {finding.id}: ", "dim"), visible(finding.message), Span(" because: ", "dim"),
                       visible(reason))  # fmt: skip
        if findings and not brief:
            yield ""
        said += findings
    if not brief:
        yield from closing(said)


def _grouped(rows: Iterable[CheckRow], ignored: bool) -> dict[_Found, list[CheckRow]]:
    groups: dict[_Found, list[CheckRow]] = {}
    for row in rows:
        findings = ((row.error,) if row.error is not None else ()) + row.findings
        groups.setdefault((row.op, findings, row.ignored if ignored else ()), []).append(row)
    return groups


def _verdict(op: str, findings: tuple[Finding, ...], cases: list[CheckRow]) -> Line:
    dims = case(cases[0].case)
    more = f" and {count(len(cases) - 1, 'more case')}" if len(cases) > 1 else ""
    where = f"  {dims}{more}" if dims or more else ""
    said = tally(findings) if findings else "ok"
    return line(Span(visible(op), "title"), Span(where, "dim"), ": ", Span(said, _VERDICTS[worst(findings)]))
