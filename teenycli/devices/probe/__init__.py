"""Running an op at small dims on the CPU device, to see what no reading of it can tell.

    with Prober() as prober:
        for probed in prober.probe(spec, module, backward_module, overrides):
            probed.findings

``dims`` chooses where to look, ``trial`` runs one case, ``orders`` tries other orders of arguments where it goes wrong.

May import ``errors``, ``exits``, ``launch``, ``manifest.spec``, ``ptx.model``, ``tensors``, and in this room all but
``cuda``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from msgspec import Struct, field

from teenycli.devices.base import Kernel
from teenycli.devices.contents import backward_names, initial_arrays, reference_arrays, reference_names
from teenycli.devices.cpu import CpuDevice
from teenycli.devices.execute import Execution, execute
from teenycli.devices.probe.dims import Case, Planner, cases, own_cases
from teenycli.devices.probe.orders import Order, orders
from teenycli.devices.probe.trial import Outcome, Trial, may_be_gentle, probing_data, try_plan
from teenycli.devices.variables import initial_globals
from teenycli.errors import Finding, Severity, TeenyError
from teenycli.exits import Exit
from teenycli.launch.cases import Overrides
from teenycli.launch.plan import Plan
from teenycli.manifest.spec import OpSpec
from teenycli.ptx.model import Module
from teenycli.tensors.convert import Array

#: Most runs, and seconds, of the search for an order of arguments that gives the right numbers.
ORDER_RUNS, ORDER_SECONDS = 200, 3.0
#: Most seconds of a launch once it is known that something is wrong.
_SECOND_TIMEOUT = 1.0


class Probed(Struct, frozen=True):
    """One case of an op, or of its ``backward``, that was looked at, and what was found in it."""

    case: Mapping[str, int]
    backward: bool = False
    findings: tuple[Finding, ...] = ()


class Prober:
    """Probes ops on a CPU device of its own, which keeps the kernels that it has loaded; close it when done.

    ``timeout`` is for each launch, in seconds. ``order_runs`` bounds the search for another order of arguments; 0 is
    none.
    """

    def __init__(self, seed: int = 0, timeout: float = 10.0, order_runs: int = ORDER_RUNS) -> None:
        self.seed = seed
        self.timeout = timeout
        self.order_runs = order_runs
        self.device = CpuDevice(output=lambda text: None)  # noqa: ARG005  (what kernels print is not asked for)
        self._kernels: dict[tuple[str, str, str], Kernel | TeenyError] = {}

    def probe(
        self, spec: OpSpec, module: Module, backward: Module | None = None, overrides: Overrides | None = None
    ) -> tuple[Probed, ...]:
        """Every case that was looked at, up to the first where something is wrong.

        ``module`` is the op's PTX, ``backward`` that of its backward, None to leave that out. Dims of ``overrides`` are
        kept. What cannot be run here is a note ``not-probed``. The op's arguments must fit its entry (the findings
        ``argument-count`` and ``argument-width`` tell).
        """
        modules = (module,) if backward is None else (module, backward)
        planner = Planner(spec, modules, overrides or Overrides(), self.device.limits)
        return tuple(_Course(self, spec, modules, planner).probed())

    def run(self, spec: OpSpec, plan: Plan, module: Module, arrays: Mapping[str, Array], timeout: float) -> Execution:
        """Run a plan of ``spec`` and bring all buffers back. Raises what the device raises."""
        kernels = {launch.entry: self._loaded(module, launch.entry) for launch in plan.launches[:1]}
        variables = initial_globals(spec.kernel(plan.backward), module, self.seed)
        return execute(
            plan, module, self.device, arrays, timeout=timeout, everything=True, kernels=kernels, variables=variables
        )

    def _loaded(self, module: Module, entry: str) -> Kernel:
        key = (module.source.name, module.source.text, entry)
        known = self._kernels.get(key)
        if isinstance(known, TeenyError):
            raise known
        if known is not None:
            return known
        try:
            kernel = self.device.load(module, entry)
        except TeenyError as error:
            self._kernels[key] = error
            raise
        self._kernels[key] = kernel
        return kernel

    def close(self) -> None:
        """Give the device back."""
        self._kernels.clear()
        self.device.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def probe(
    spec: OpSpec, module: Module, backward: Module | None = None, overrides: Overrides | None = None
) -> list[Finding]:
    """What probing an op finds, with a device opened for it alone."""
    with Prober() as prober:
        return [finding for probed in prober.probe(spec, module, backward, overrides) for finding in probed.findings]


def _why(planner: Planner) -> str:
    if planner.refusal is not None:
        return planner.refusal.finding.message
    return "its dims are too large to be run here: give smaller ones with --dim"


def _not_probed(spec: OpSpec, why: str, *, backward: bool = False) -> Finding:
    where = spec.kernel(backward).origin.place()
    return Finding("not-probed", f"nothing was run: {why}", Severity.NOTE, where)


class _Course(Struct):
    """The probing of one op. ``refusals`` are what kept cases from being run, of the forward and of the backward."""

    prober: Prober
    spec: OpSpec
    modules: Sequence[Module]
    planner: Planner
    refusals: dict[bool, TeenyError] = field(default_factory=dict)
    _forwards: dict[tuple[str, bool], tuple[Trial, Outcome]] = field(default_factory=dict)
    _chosen: list[Case] = field(default_factory=list)
    _to_choose: Iterator[Case] | None = None

    def probed(self) -> Iterator[Probed]:
        """The forward at every case, then the backward, if nothing is wrong with the forward."""
        for backward in (False, True)[: len(self.modules)]:
            looked = list(self._looked_at(backward))
            if not looked:
                refusal = self.refusals.get(backward)
                why = _why(self.planner) if refusal is None else refusal.finding.message
                looked = [Probed({}, backward, (_not_probed(self.spec, why, backward=backward),))]
            yield from looked
            if any(self._counted(probed.findings) for probed in looked):
                return

    @property
    def cases(self) -> Iterator[Case]:
        """The cases to look at, each chosen when it is first asked for: most mistakes show at the first."""
        if self._to_choose is None:
            self._to_choose = cases(self.planner)
        yield from self._chosen
        for case in self._to_choose:
            self._chosen.append(case)
            yield case

    def _looked_at(self, backward: bool) -> Iterator[Probed]:
        for case in self.cases:
            try:
                trial, outcome, gentle = self._look(case, backward)
            except TeenyError as error:
                self.refusals[backward] = error
                if error.exit is Exit.UNSUPPORTED:
                    return
                if case.own:  # nobody can blame the dims
                    yield Probed(case.dims, backward, (error.finding,))
                    return
                continue
            findings = outcome.findings
            if self._counted(findings):
                findings = (self._hinted(case, trial, findings[0], gentle), *findings[1:])
            yield Probed(case.dims, backward, findings)
            if self._counted(findings):
                return

    def _look(self, case: Case, backward: bool, timeout: float | None = None) -> tuple[Trial, Outcome, bool]:
        """A trial of ``case``, what it showed, and whether it took gentle data: where other data show a problem, and
        gentle ones do not, the data were to blame. Raises what keeps it from being run."""
        last = may_be_gentle(case.plans[0])
        for gentle in (False, True)[:last]:
            with suppress(TeenyError):
                seen = *self._tried(case, backward, gentle, timeout), gentle
                if not self._counted(seen[1].findings):
                    return seen
        return *self._tried(case, backward, last, timeout), last

    def _counted(self, findings: Sequence[Finding]) -> bool:
        """Whether there is one among them that the op does not ignore."""
        return any(finding.id not in self.spec.ignore for finding in findings)

    def _tried(self, case: Case, backward: bool, gentle: bool, timeout: float | None = None) -> tuple[Trial, Outcome]:
        if backward:
            trial = self._backward(case, gentle)
            return trial, self._try(trial, trial.plan, timeout)
        key = (case.shown, gentle)
        if key not in self._forwards:
            trial = self._forward(case, gentle)
            self._forwards[key] = trial, self._try(trial, trial.plan, timeout)
        return self._forwards[key]

    def _try(self, trial: Trial, plan: Plan, timeout: float | None = None) -> Outcome:
        module = self.modules[plan.backward]
        seconds = self.prober.timeout if timeout is None else timeout
        return try_plan(trial, plan, lambda each, arrays: self.prober.run(self.spec, each, module, arrays, seconds))

    def _forward(self, case: Case, gentle: bool) -> Trial:
        spec, plan, seed = self.spec, case.plans[0], self.prober.seed
        arrays = initial_arrays(spec, plan, seed, probing_data(spec, plan, seed, gentle=gentle, faint=case.faint))
        expected = reference_arrays(spec, plan, reference_names(spec, plan, arrays))
        return Trial(spec, plan, case.shown, case.own, arrays, expected)

    def _backward(self, case: Case, gentle: bool) -> Trial:
        forward, outcome = self._tried(case, backward=False, gentle=gentle)
        spec, plan = self.spec, case.plans[1]
        arrays = initial_arrays(spec, plan, self.prober.seed, outcome.arrays or {})
        expected = reference_arrays(spec, plan, backward_names(spec, plan, arrays, forward.arrays))
        return Trial(spec, plan, case.shown, case.own, arrays, expected)

    # --- what to say of it ---

    def _hinted(self, case: Case, trial: Trial, finding: Finding, gentle: bool) -> Finding:
        """``finding`` with the order of arguments that is right, or with what else there is to say."""
        order, complete = self._right_order(case, trial, gentle)
        if order is not None:
            result = "the result matches" if trial.expected else "nothing is wrong"
            return finding.but(hint=f"{order} {result}")
        own = None if case.own else self._own_is_right(trial.plan.backward)
        if own is not None:
            note = f"at the op's own {own} nothing is wrong: if the kernel takes some sizes only, say so in its dims "
            finding = finding.but(note=f"{note}(multiple_of, min, max)" + _more(finding.note))
        if finding.id == "probe-mismatch" and complete:
            hint = "no exchange of two or three arguments of a kind makes it right: look at values, strides and grid"
            finding = finding.but(hint=hint)
        return finding

    def _own_is_right(self, backward: bool) -> str | None:
        """The first case of the op's own, in words, when nothing is wrong with any of them."""
        own = list(own_cases(self.planner))
        for case in own:
            try:
                _, outcome, _ = self._look(case, backward, self._short)
            except TeenyError:
                return None
            if self._counted(outcome.findings):
                return None
        return own[0].shown if own else None

    @property
    def _short(self) -> float:
        """Seconds that a launch may take once it is known that something is wrong."""
        return min(self.prober.timeout or _SECOND_TIMEOUT, _SECOND_TIMEOUT)

    def _right_order(self, case: Case, trial: Trial, gentle: bool) -> tuple[Order | None, bool]:
        """The first order of arguments with which nothing is wrong at any case, and whether all were tried.

        Without a reference there is one only where no other does as well.
        """
        end, fits = time.monotonic() + ORDER_SECONDS, list[Order]()
        for run, order in enumerate(orders(trial.plan, trial.kernel.args)):
            if run >= self.prober.order_runs or time.monotonic() > end:
                return None, False
            if not self._fits(order, trial) or not self._fits_all(order, case, trial.plan.backward, gentle):
                continue
            if trial.expected:
                return order, True
            fits.append(order)
        return (fits[0] if len(fits) == 1 else None), True

    def _fits_all(self, order: Order, case: Case, backward: bool, gentle: bool) -> bool:
        """Whether nothing is wrong with an order at all cases but ``case``."""
        for other in list(self.cases):
            if other is case:
                continue
            try:
                trial = self._backward(other, gentle) if backward else self._forward(other, gentle)
            except TeenyError:
                continue
            if not self._fits(order, trial):
                return False
        return True

    def _fits(self, order: Order, trial: Trial) -> bool:
        try:
            return not self._counted(self._try(trial, order.applied(trial.plan), self._short).findings)
        except TeenyError:
            return False


def _more(note: str | None) -> str:
    return f"\n{note}" if note else ""


__all__ = ["ORDER_RUNS", "ORDER_SECONDS", "Probed", "Prober", "probe"]
