"""Who reports a mutant: the static rules, the probe, or nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from msgspec.structs import replace

from teenycli.checks import largest_inputs
from teenycli.commands.cases import judge, judge_backward, with_memory
from teenycli.errors import Finding, Severity, TeenyError
from teenycli.launch.cases import Overrides, cases_of
from teenycli.launch.plan import Address, Argument, Buffer, Plan
from teenycli.manifest.rules import Rules
from teenycli.manifest.spec import OpSpec
from tests.mutants.kinds import Mutant
from tests.mutants.oracle import Oracle, Verdict
from tests.mutants.subjects import Modules

#: What a probe finds in an op or, where it is told so, in its backward.
Probe = Callable[[OpSpec, bool], Iterable[Finding]]

#: What counts as a report.
REPORTS = (Severity.ERROR, Severity.WARNING)


@dataclass(frozen=True)
class Result:
    """What became of a mutant: the ids of the findings that reported it, the first of each judge, or None."""

    mutant: Mutant
    verdict: Verdict
    static: str | None = None
    probe: str | None = None
    alike: bool = False

    @property
    def outcome(self) -> str:
        """``equivalent``, ``static``, ``probe``, ``survived``; or ``unrun``, where nobody reports it and the device
        cannot tell whether it computes something else.
        """
        if not self.verdict.changes:
            return "equivalent"
        return "static" if self.static else "probe" if self.probe else "survived" if self.verdict.ran else "unrun"

    @property
    def counts(self) -> bool:
        """Whether it is known to compute something else."""
        return self.verdict.changes and self.verdict.ran

    @property
    def missed(self) -> bool:
        """Whether it may compute something else and the static rules say nothing."""
        return self.verdict.changes and not self.static


@contextmanager
def product_probe(modules: Modules) -> Iterator[Probe | None]:
    """What ``teeny check --probe`` finds, on one device for all; None where the product has no probe."""
    if find_spec("teenycli.devices.probe") is None:
        yield None
        return
    with import_module("teenycli.devices.probe").Prober(order_runs=0) as prober:

        def probe(spec: OpSpec, backward: bool) -> Iterator[Finding]:
            both = modules.of(spec.backward) if spec.backward is not None else None
            for probed in prober.probe(spec, modules.of(spec), both):
                if probed.backward or not backward:
                    yield from probed.findings

        yield probe


def judge_all(mutants: Iterable[Mutant], modules: Modules, probe: Probe | None = None) -> list[Result]:
    """What becomes of each of ``mutants``, on one device."""
    with Oracle(modules) as oracle:
        return [judged(mutant, modules, oracle, probe) for mutant in mutants]


def judged(mutant: Mutant, modules: Modules, oracle: Oracle, probe: Probe | None = None) -> Result:
    """The verdict on a mutant, and who reports it; the probe is asked where the static rules say nothing."""
    verdict, same = oracle.verdict(mutant), alike(mutant, modules)
    static = next(statically(mutant.spec, modules, mutant.backward), None)
    found = None if static or not verdict.changes else _probed(mutant, probe)
    return Result(mutant, verdict, static, found, same)


def statically(spec: OpSpec, modules: Modules, backward_alone: bool = False) -> Iterator[str]:
    """Ids of what ``teeny check`` finds in the op and its backward, in all cases; errors of the op too."""
    try:
        Rules(spec).check()
        for backward in (False, True):
            if (backward_alone and not backward) or (backward and spec.backward is None):
                continue
            ask, module = judge_backward if backward else judge, modules.of(spec.kernel(backward))
            judged = [ask(spec, case, Overrides(), module) for case in cases_of(spec)]
            for one, largest in zip(judged, largest_inputs([each.plan for each in judged]), strict=True):
                yield from (each.id for each in with_memory(one, largest).findings if each.severity in REPORTS)
    except TeenyError as error:
        yield error.finding.id


def _probed(mutant: Mutant, probe: Probe | None) -> str | None:
    if probe is None:
        return None
    try:
        found = probe(mutant.spec, mutant.backward)
        return next((each.id for each in found if each.severity in REPORTS and each.id not in mutant.spec.ignore), None)
    except TeenyError as error:
        return error.finding.id


def alike(mutant: Mutant, modules: Modules) -> bool:
    """Whether two arguments are exchanged that the code uses alike: the same is known of what it does with both
    parameters, and buffers that they point to have one type and shape."""
    if not mutant.edit.args:
        return False
    spec, backward = mutant.original, mutant.backward
    plan = modules.plan(spec, cases_of(spec)[0], backward)
    usages = modules.usages(spec.kernel(backward), plan.entry)
    # Parts say which parameter they are of, and so are never equal.
    first, second = (replace(usages[k], parts=()) for k in mutant.edit.args)
    return first == second and all(_alike(plan, launch.args, mutant.edit.args) for launch in plan.launches)


def _alike(plan: Plan, args: tuple[Argument, ...], which: tuple[int, ...]) -> bool:
    first, second = (_buffer(plan, args[k]) for k in which)
    if first is None or second is None:
        return first is second
    return (first.dtype, first.shape, first.rows) == (second.dtype, second.shape, second.rows)


def _buffer(plan: Plan, argument: Argument) -> Buffer | None:
    value = argument.fields[0].value
    return plan.buffer(value.buffer) if isinstance(value, Address) and value.buffer is not None else None
