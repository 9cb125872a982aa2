"""Findings as GitHub's workflow commands, which annotate the lines of a pull request.

GitHub Docs, "Workflow commands for GitHub Actions". May import ``errors`` and, in this room, ``rows`` and ``text``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from teenycli.errors import Finding, Severity
from teenycli.report.rows import CheckRow
from teenycli.report.text import visible

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def workflow_commands(rows: Iterable[CheckRow], root: Path) -> Iterator[str]:
    """A command for each finding of each op, those that several cases share once. Files are named from ``root``."""
    found = ((row.op, finding) for row in rows for finding in ((row.error,) if row.error else ()) + row.findings)
    for op, finding in dict.fromkeys(found):
        yield annotation(finding, root, op)


def annotation(finding: Finding, root: Path, op: str | None = None) -> str:
    """``::error file=…,line=…,title=…::…``, its hint and note on lines of the message."""
    properties: dict[str, str | int] = {}
    if finding.where is not None and finding.where.file:
        properties = {"file": _from(root, finding.where.file), "line": finding.where.line, "col": finding.where.column}
    properties["title"] = finding.id if op is None else f"{op}: {finding.id}"
    given = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items() if value)
    parts = [finding.message]
    parts += [f"{word}: {text}" for word, text in (("hint", finding.hint), ("note", finding.note)) if text]
    message = "\n".join(visible(row) for part in parts for row in part.split("\n"))
    return f"::{_COMMANDS[finding.severity]} {given}::{_escaped(message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def _from(root: Path, file: str) -> str:
    """The path as GitHub knows it, when the file lies in ``root``."""
    path, top = Path(file).resolve(), root.resolve()
    return path.relative_to(top).as_posix() if path.is_relative_to(top) else file
