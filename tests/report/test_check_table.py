from __future__ import annotations

import io

import pytest

from teenycli.errors import Finding, Place, Severity
from teenycli.report.check_table import check_page
from teenycli.report.console import Console
from teenycli.report.rows import CheckRow

pytestmark = pytest.mark.unit

WIDTH = Finding(
    "argument-width", "x is 4 bytes, n has 8", where=Place("ops.toml", key="op.b.args[1]"), hint="write i64"
)
ALIGN = Finding("alignment", "may be slow", Severity.WARNING)
ROWS = [
    CheckRow("a", {"N": 1}),
    CheckRow("a", {"N": 2}),
    CheckRow("b", {"N": 1}, (WIDTH, ALIGN)),
    CheckRow("b", {"N": 2}, (WIDTH, ALIGN)),
    CheckRow("b", {"N": 3}, (ALIGN,)),
    CheckRow("c", {}, (), Finding("missing-file", "c.ptx is not there")),
]


def drawn(brief: bool) -> str:
    console = Console.of_buffers()
    console.show(*check_page(ROWS, brief=brief))
    assert isinstance(console.out.stream, io.StringIO)
    return console.out.stream.getvalue()


def test_in_full() -> None:
    assert drawn(brief=False) == (
        "a  N=1 and 1 more case: ok\n"
        "b  N=1 and 1 more case: 1 error, 1 warning\n"
        "error[argument-width]: x is 4 bytes, n has 8\n"
        "  at ops.toml: op.b.args[1]\n"
        "  hint: write i64\n"
        "warning[alignment]: may be slow\n"
        "\n"
        "b  N=3: 1 warning\n"
        "warning[alignment]: may be slow\n"
        "\n"
        "c: 1 error\n"
        "error[missing-file]: c.ptx is not there\n"
        "\n"
        "teeny explain argument-width\n"
    )


def test_brief_has_a_line_for_each_finding() -> None:
    assert drawn(brief=True) == (
        "a  N=1 and 1 more case: ok\n"
        "b  N=1 and 1 more case: 1 error, 1 warning\n"
        "ops.toml: op.b.args[1]: error[argument-width]: x is 4 bytes, n has 8 (hint: write i64)\n"
        "warning[alignment]: may be slow\n"
        "b  N=3: 1 warning\n"
        "warning[alignment]: may be slow\n"
        "c: 1 error\n"
        "error[missing-file]: c.ptx is not there\n"
    )
