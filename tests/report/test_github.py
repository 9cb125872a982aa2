from __future__ import annotations

from pathlib import Path

import pytest

from teenycli.errors import Finding, Place, Severity
from teenycli.report.github import annotation, workflow_commands
from teenycli.report.rows import CheckRow

pytestmark = pytest.mark.unit


def test_line_and_column_are_there_when_known() -> None:
    finding = Finding("syntax", "no", where=Place("k.ptx", 3, 7))
    assert annotation(finding, Path()) == "::error file=k.ptx,line=3,col=7,title=syntax::no"
    assert annotation(Finding("a", "b", Severity.NOTE), Path(), "op") == "::notice title=op%3A a::b"


def test_what_would_end_a_command_or_a_property_is_escaped() -> None:
    finding = Finding("x", "50%: a,b\nc\r::error::d", where=Place("a,b:c%.ptx", 1), hint="e")
    assert annotation(finding, Path(), "o,p") == (
        "::error file=a%2Cb%3Ac%25.ptx,line=1,title=o%2Cp%3A x::50%25: a,b%0Ac\\r::error::d%0Ahint: e"
    )


def test_files_are_named_from_the_root(tmp_path: Path) -> None:
    inside, outside = str(tmp_path / "sub" / "ops.toml"), "/elsewhere/ops.toml"
    assert "file=sub/ops.toml," in annotation(Finding("x", "y", where=Place(inside, 1)), tmp_path)
    assert "file=/elsewhere/ops.toml," in annotation(Finding("x", "y", where=Place(outside, 1)), tmp_path)


def test_cases_that_share_a_finding_share_its_command() -> None:
    finding, error = Finding("x", "y"), Finding("e", "f")
    rows = [CheckRow("a", {"N": 1}, (finding,)), CheckRow("a", {"N": 2}, (finding,)), CheckRow("b", {}, (), error)]
    assert list(workflow_commands(rows, Path())) == ["::error title=a%3A x::y", "::error title=b%3A e::f"]
