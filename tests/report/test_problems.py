from __future__ import annotations

import pytest

from teenycli.errors import Finding, Place, Severity, TeenyError
from teenycli.report.console import Console
from teenycli.report.jsonout import problem_document
from teenycli.report.problems import problem, problem_line, problem_lines, tally, worst
from teenycli.report.text import plain

pytestmark = pytest.mark.unit

FINDING = Finding(
    "argument-count",
    "softmax takes 5 arguments, 'args' gives 4",
    where=Place("ops.toml", 14, 8, "op.softmax.args", 'args = ["ptr x"]'),
    hint="add the missing one",
    note="its parameters are x, out, n",
)


def test_a_block_has_everything() -> None:
    assert problem_lines(FINDING) == [
        "error[argument-count]: softmax takes 5 arguments, 'args' gives 4",
        "  at ops.toml:14:8: op.softmax.args",
        '  14 | args = ["ptr x"]',
        "     |        ^",
        "  hint: add the missing one",
        "  note: its parameters are x, out, n",
    ]


def test_a_bare_finding_is_a_line() -> None:
    assert problem_lines(Finding("x", "it is so", Severity.NOTE)) == ["note[x]: it is so"]


def test_an_error_carries_one() -> None:
    assert problem_lines(TeenyError("a-b", "no").finding) == ["error[a-b]: no"]


def test_a_column_within_an_expression_needs_no_line() -> None:
    where = Place("ops.toml", 0, 10, "op.a.reference", "exp(x) / smu(x)")
    assert problem_lines(Finding("unknown-name", "unknown function 'smu'", where=where))[1:] == [
        "  at ops.toml: op.a.reference",
        "   | exp(x) / smu(x)",
        "   |          ^",
    ]


def test_several_lines_in_a_message_and_a_hint_are_indented() -> None:
    finding = Finding("x", "one\ntwo", hint="three\nfour", where=Place(text="   "))
    assert problem_lines(finding) == ["error[x]: one", "  two", "  hint: three", "        four"]


def test_one_line_for_a_pipe() -> None:
    assert plain(problem_line(FINDING)) == (
        "ops.toml:14:8: op.softmax.args: error[argument-count]: softmax takes 5 arguments, 'args' gives 4"
        " (hint: add the missing one)"
    )
    assert plain(problem_line(Finding("x", "one\n  two", Severity.WARNING))) == "warning[x]: one two"


def test_what_comes_from_a_file_cannot_steer_the_terminal() -> None:
    hostile = "\x1b]0;title\x07\x1b[2J"
    finding = Finding("x", hostile, where=Place(hostile, 1, 1, hostile, hostile), hint=hostile, note=hostile)
    assert "\x1b" not in "".join(problem_lines(finding))
    assert "\x1b" not in plain(problem_line(finding))


def test_colours_show_the_severity() -> None:
    console = Console.of_buffers(tty=True, colour=True, width=80)
    console.tell(*problem(Finding("x", "so", Severity.WARNING)))
    assert console.err.stream.getvalue() == "\x1b[33mwarning[x]\x1b[0m: \x1b[1mso\x1b[0m\n"  # type: ignore[attr-defined]


def test_as_json() -> None:
    assert problem_document(FINDING) == {
        "id": "argument-count",
        "severity": "error",
        "message": "softmax takes 5 arguments, 'args' gives 4",
        "where": "ops.toml:14:8: op.softmax.args",
        "hint": "add the missing one",
        "note": "its parameters are x, out, n",
    }
    assert problem_document(Finding("x", "so"))["where"] is None


def test_tally_and_worst() -> None:
    findings = [Finding("a", "", severity) for severity in (Severity.NOTE, Severity.WARNING, Severity.WARNING)]
    assert tally(findings) == "2 warnings, 1 note"
    assert worst(findings) is Severity.WARNING
    assert tally([]) == "no problems"
    assert worst([]) is None
