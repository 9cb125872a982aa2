"""What ``teeny check`` finds in the ops and pipelines of a manifest: a row a case, and the exit code that an error in
its place leads to.

May import the rooms below and, in this room, ``cases``, ``checkpoint`` and ``probing``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from teenycli.checks import LAYOUT_IDS, MEMORY_WORK, MEMORY_WORK_OF_CASES, Host, largest_inputs
from teenycli.checks.ignores import idle_ignores
from teenycli.commands.cases import (
    Judged,
    Modules,
    judge,
    judge_backward,
    judge_chain,
    open_chain,
    with_memory,
)
from teenycli.errors import TeenyError
from teenycli.exits import Exit
from teenycli.launch.cases import Overrides, cases_of, overrides_for
from teenycli.manifest.load import Manifest
from teenycli.manifest.spec import OpSpec
from teenycli.report.rows import CheckRow

if TYPE_CHECKING:
    from teenycli.commands.checkpoint import Checkpoint
    from teenycli.devices.probe import Prober

Outcome = tuple[CheckRow, Exit]


class Judging(Struct, frozen=True):
    """Ops and pipelines of ``manifest``, under what the command line says. With a ``prober`` ops are run, too."""

    manifest: Manifest
    overrides: Overrides
    checkpoint: Checkpoint | None
    host: Host
    prober: Prober | None = None
    modules: Modules = field(default_factory=Modules)

    def op(self, name: str) -> list[Outcome]:
        """The rows of an op and of its backward."""
        outcomes = list(self._cases(name))
        if name not in self.manifest.ops:
            return outcomes
        spec, code = self.manifest.ops[name], max(code for _, code in outcomes)
        rows = [row for row, _ in outcomes]
        if self.prober is not None:
            from teenycli.commands.probing import with_probes

            rows = with_probes(self.prober, spec, self.overrides, rows, self.modules)
        if not (self.overrides.dims or self.overrides.scalars):
            rows = self._with_idle(spec, rows)
        return [(row, code) for row in rows]

    def pipeline(self, name: str) -> Outcome:
        """A row for a pipeline: what does not fit between its ops, and in each at the dims that it has there."""
        try:
            chain = open_chain(self.manifest, [name], self.modules.of)
            assert chain is not None
            overrides = overrides_for([step.spec for step in chain.pipeline.steps], self.overrides)
            judged = [with_memory(one) for one in judge_chain(chain, overrides, host=self.host)]
        except TeenyError as error:
            return CheckRow(f"pipeline.{name}", {}, error=error.finding), error.exit
        findings = tuple(dict.fromkeys(finding for one in judged for finding in one.findings))
        ignored = tuple((finding, one.spec.ignore[finding.id]) for one in judged for finding in one.ignored)
        return CheckRow(f"pipeline.{name}", {}, findings, ignored=ignored), Exit.OK

    def _cases(self, name: str) -> Iterator[Outcome]:
        if name in self.manifest.gaps:
            yield CheckRow(name, {}, self.manifest.gaps[name]), Exit.FAILED
            return
        try:
            spec = self.manifest.op(name)
            cases, module = cases_of(spec, self.overrides), self.modules.of(spec)
            backward = None if spec.backward is None else self.modules.of(spec.backward)
        except TeenyError as error:
            yield CheckRow(name, {}, error=error.finding), error.exit
            return
        judges = [partial(judge, spec, case, self.overrides, module, self.checkpoint, self.host) for case in cases]
        yield from _rows(name, cases, judges)
        if backward is not None:
            judges = [partial(judge_backward, spec, case, self.overrides, backward, self.host) for case in cases]
            yield from _rows(spec.kernel(True).name, cases, judges)

    def _with_idle(self, spec: OpSpec, rows: list[CheckRow]) -> list[CheckRow]:
        """The rows of an op, with what there is to say of its ``ignore``; as they are when not all was looked at."""
        if any(row.error is not None or any(finding.id in LAYOUT_IDS for finding in row.findings) for row in rows):
            return rows
        not_probed = any(finding.id == "not-probed" for row in rows for finding in row.findings)
        used = {finding.id for row in rows for finding, _ in row.ignored}
        idle = tuple(idle_ignores(spec, used, probed=self.prober is not None and not not_probed))
        return [replace(row, findings=row.findings + idle) if row.op == spec.name else row for row in rows]


def _rows(name: str, cases: Sequence[dict[str, int]], judges: Sequence[Callable[[], Judged]]) -> Iterator[Outcome]:
    """The rows of an op at its cases: what fits each launch, and then what the launches touch."""
    attempts = [_attempt(judge) for judge in judges]
    largest = iter(largest_inputs([one.plan for one in attempts if not isinstance(one, TeenyError)]))
    work = min(MEMORY_WORK, MEMORY_WORK_OF_CASES // max(len(cases), 1))
    for case, judged in zip(cases, attempts, strict=True):
        if not isinstance(judged, TeenyError):
            judged = _attempt(partial(with_memory, judged, next(largest), work))
        if isinstance(judged, TeenyError):
            yield CheckRow(name, case, error=judged.finding), judged.exit
            continue
        ignored = tuple((finding, judged.spec.ignore[finding.id]) for finding in judged.ignored)
        yield CheckRow(name, case, judged.findings, ignored=ignored), Exit.OK


def _attempt(judge: Callable[[], Judged]) -> Judged | TeenyError:
    try:
        return judge()
    except TeenyError as error:
        return error
