"""``teeny check --probe``: what running each op at small dims shows, in the rows of what the rules found.

May import the rooms below; numpy is here through ``devices.probe``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from teenycli.checks import LAYOUT_IDS
from teenycli.commands.cases import Modules
from teenycli.devices.probe import Probed, Prober
from teenycli.errors import Finding
from teenycli.launch.cases import Overrides
from teenycli.manifest.spec import OpSpec
from teenycli.report.rows import CheckRow


def with_probes(
    prober: Prober, spec: OpSpec, overrides: Overrides, rows: Sequence[CheckRow], modules: Modules
) -> list[CheckRow]:
    """The rows of an op and its backward, with what probing found: in the row of the same case, else in one of its own.

    An op whose launches cannot be laid out is not run, and a backward neither.
    """
    if not _can_run(row for row in rows if row.op == spec.name):
        return list(rows)
    backward = spec.backward
    if backward is not None and not _can_run(row for row in rows if row.op == backward.name):
        backward = None
    found = list(rows)
    for probed in prober.probe(spec, modules.of(spec), None if backward is None else modules.of(backward), overrides):
        _enter(found, spec, probed)
    return found


def _can_run(rows: Iterable[CheckRow]) -> bool:
    return all(row.error is None and not any(finding.id in LAYOUT_IDS for finding in row.findings) for row in rows)


def _enter(rows: list[CheckRow], spec: OpSpec, probed: Probed) -> None:
    """Put findings into the row of their case; what is of no case in the first of the op."""
    op = spec.kernel(probed.backward).name
    counted: tuple[Finding, ...] = tuple(finding for finding in probed.findings if finding.id not in spec.ignore)
    ignored = tuple((finding, spec.ignore[finding.id]) for finding in probed.findings if finding.id in spec.ignore)
    for k, row in enumerate(rows):
        if row.op == op and (not probed.case or row.case == probed.case):
            rows[k] = replace(row, findings=row.findings + counted, ignored=row.ignored + ignored)
            return
    rows.append(CheckRow(op, probed.case, counted, ignored=ignored))
