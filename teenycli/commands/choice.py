"""Findings by their ids: which ``teeny check`` shows, and which of them fail: ``--select``, ``--ignore``, ``--strict``.

May import click and the rooms below.
"""

from __future__ import annotations

from collections.abc import Iterable

import click
from msgspec import Struct
from msgspec.structs import replace

from teenycli.commands.options import Command
from teenycli.errors import Finding, Severity, TeenyError, did_you_mean
from teenycli.exits import Exit
from teenycli.explain import groups, matching
from teenycli.report.rows import CheckRow


def known_ids(names: Iterable[str]) -> list[str]:
    """The ids of findings that ``names`` stand for, each once. Raises TeenyError ``unknown-id``."""
    found: list[str] = []
    for name in names:
        ids = matching(name, groups())
        if not ids:
            hint = did_you_mean(name, groups()) or "'teeny explain' lists all"
            raise TeenyError("unknown-id", f"no finding has the id '{name}'", hint=hint)
        found += ids
    return list(dict.fromkeys(found))


class Choice(Struct, frozen=True):
    """Ids to show (all, when ``selected`` is empty) less those to leave out; ``failing`` are the severities that fail.

    What keeps an op from being checked at all is shown and fails whatever is chosen.
    """

    selected: frozenset[str]
    ignored: frozenset[str]
    failing: frozenset[Severity]

    @classmethod
    def of(cls, select: Iterable[str], ignore: Iterable[str], strict: bool) -> Choice:
        """From the options' values, lists parted by commas. Raises TeenyError ``unknown-id``."""
        failing = {Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR}
        return cls(_ids(select), _ids(ignore), frozenset(failing))

    def of_row(self, row: CheckRow) -> CheckRow:
        """The row with what is to be shown of it."""
        return replace(row, findings=tuple(filter(self._shows, row.findings)))

    def exit(self, row: CheckRow) -> Exit:
        """The exit code that the row's findings lead to."""
        return Exit.FAILED if any(finding.severity in self.failing for finding in row.findings) else Exit.OK

    def _shows(self, finding: Finding) -> bool:
        return (not self.selected or finding.id in self.selected) and finding.id not in self.ignored


def _ids(lists: Iterable[str]) -> frozenset[str]:
    names = [name.strip() for text in lists for name in text.split(",")]
    return frozenset(known_ids(filter(None, names)))


def choice_options(command: Command) -> Command:
    """``--select``, ``--ignore``, ``--strict``, ``--format``."""
    for option in reversed(
        (
            click.option("--select", multiple=True, metavar="ID[,ID]",
                         help="Show these findings only; the first words of an id stand for all that begin so."),
            click.option("--ignore", multiple=True, metavar="ID[,ID]", help="Leave these findings out."),
            click.option("--strict", is_flag=True, help="Let warnings fail as errors do."),
            click.option("--format", "form", type=click.Choice(("text", "github")), default="text", show_default=True,
                         help="Print text, or GitHub's annotations."),
        )
    ):  # fmt: skip
        command = option(command)
    return command
