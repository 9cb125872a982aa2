"""What the rules found, op by op.

May import ``rows``, ``layout``, ``numbers``, ``problems`` and ``text`` of this room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from teenycli.errors import Finding, Severity
from teenycli.report.layout import Item
from teenycli.report.numbers import case, count
from teenycli.report.problems import problem, problem_line, tally, worst
from teenycli.report.rows import CheckRow
from teenycli.report.text import Line, Span, line, visible

_VERDICTS = {None: "good", Severity.NOTE: "note", Severity.WARNING: "warn", Severity.ERROR: "bad"}


def check_page(rows: Iterable[CheckRow], *, brief: bool = False) -> Iterator[Item]:
    """A line for each op and case with what was found; under it the findings, in full or, ``brief``, a line each.

    Cases of an op with the same findings share a line.
    """
    for (op, findings), cases in _grouped(rows).items():
        yield _verdict(op, findings, cases)
        for finding in findings:
            if brief:
                yield problem_line(finding)
            else:
                yield from problem(finding)
        if findings and not brief:
            yield ""


def _grouped(rows: Iterable[CheckRow]) -> dict[tuple[str, tuple[Finding, ...]], list[CheckRow]]:
    groups: dict[tuple[str, tuple[Finding, ...]], list[CheckRow]] = {}
    for row in rows:
        findings = ((row.error,) if row.error is not None else ()) + row.findings
        groups.setdefault((row.op, findings), []).append(row)
    return groups


def _verdict(op: str, findings: tuple[Finding, ...], cases: list[CheckRow]) -> Line:
    dims = case(cases[0].case)
    more = f" and {count(len(cases) - 1, 'more case')}" if len(cases) > 1 else ""
    where = f"  {dims}{more}" if dims or more else ""
    said = tally(findings) if findings else "ok"
    return line(Span(visible(op), "title"), Span(where, "dim"), ": ", Span(said, _VERDICTS[worst(findings)]))
