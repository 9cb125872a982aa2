"""The course of ``teeny run``: every case planned and checked before the first is launched, then run and shown.

May import the rooms below; numpy is here through ``running``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec.structs import replace

from teenycli.arch import Target, parse_target
from teenycli.checks import LAYOUT_IDS, Host
from teenycli.commands.cases import Judged, judge_plan, module_of, with_memory
from teenycli.commands.checkpoint import open_checkpoint
from teenycli.commands.request import Options, Request
from teenycli.commands.running import (
    Expectation,
    How,
    Outcome,
    check_expectations,
    check_names,
    run_backward,
    run_case,
)
from teenycli.devices.base import Device
from teenycli.devices.contents import name_of
from teenycli.devices.gradcheck import Pair, check_differentiable
from teenycli.devices.select import Chosen, choose, foreseen, look
from teenycli.devices.variables import check_globals, set_to
from teenycli.errors import Finding, Severity, TeenyError
from teenycli.exits import Exit
from teenycli.launch.backward import plan_backward
from teenycli.launch.build import plan_case, with_inits
from teenycli.launch.pipeline import WIRE_IDS
from teenycli.launch.plan import Plan
from teenycli.manifest.spec import grad_name
from teenycli.ptx import Module
from teenycli.report.console import Console
from teenycli.report.jsonout import run_document
from teenycli.report.launch_table import run_page
from teenycli.report.numbers import case, count
from teenycli.report.problems import closing, problem
from teenycli.report.progress import ProgressLine
from teenycli.report.rows import Compared, RunReport, RunRow
from teenycli.tensors.files import FileRef, Save, check_saves, parse_file, save_all

#: What looking at memory before a launch may take, in operations on threads: some 50 ms.
_RUN_WORK = 3_000_000


class Session:
    """One ``teeny run``."""

    def __init__(self, options: Options, request: Request) -> None:
        self.options = options
        self.request = request
        self.console = Console.of_process(options.color)
        self.module = module_of(request.spec)
        self.checkpoint = open_checkpoint(options.checkpoint, options.node, options.ops)
        self.backward = self._backward_module()
        #: Plans of a case.
        self.length = 1 if self.backward is None else 2
        #: The GPU that launches are judged for, where one is going to be taken.
        self.host: Host | None = None
        self.outcomes: list[Outcome] = []
        #: What was told of launches, before them and after.
        self.found: list[Finding] = []
        #: The case that ended the run early, and why.
        self.failed: tuple[Judged, TeenyError] | None = None

    def run(self) -> Exit:
        """Run it all; returns the exit code. Raises what makes a run impossible."""
        found = look(self.options.device)
        gpu = foreseen(self.options.device, found, self.module)
        self.host = None if gpu is None else Host(Target(gpu.sm))
        judged = [self._judge(dims) for dims in self.request.cases]
        stopped = [finding for steps in judged for one in steps for finding in self._stopping(one)]
        if stopped:
            return self._refuse(stopped)
        expect = Expectation(_files("--expect", self.request.expects), self.options.rtol, self.options.atol)
        saves = _files("--save", self.request.saves)
        for steps in judged:
            self._check_names([one.plan for one in steps], [*expect.files, *saves])
            for one in steps:
                check_expectations(one.plan, self._expectation(expect, one.plan))
        self._check_saves(judged[0], saves)
        how = How(self.options.seed, self.options.timeout, expect, self.request.adhoc, tuple(saves),
                  self.options.gradcheck, self.request.variables)  # fmt: skip
        check_globals([one.module for steps in judged for one in steps], self.request.variables)
        # With --json standard output is the document's alone.
        output = sys.stderr.write if self.options.as_json else None
        progress = None if self.options.quiet else ProgressLine(self.console.err)
        chosen = choose(self.options.device, found, self.module, judged[0][0].plan.entry, output, progress)
        device = chosen.device
        with _closing(device):
            self._tell_device(chosen)
            stopped = [finding for steps in judged for one in steps for finding in self._astray(one, device)]
            if stopped:
                return self._refuse(stopped)
            for one in self._laid_out([one for steps in judged for one in steps], device):
                try:
                    self.outcomes.append(self._run(device, one, how))
                except TeenyError as error:
                    if error.exit is Exit.UNUSABLE and not self.outcomes:
                        raise  # nothing has run: it is about what was asked for
                    self.failed = one, error
                    break
            if self.failed is None:
                self._save(saves)
            self._show(device)
        return self._verdict()

    # --- before the launch ---

    def _backward_module(self) -> Module | None:
        """The PTX of the backward, where one is asked for. Raises TeenyError ``no-backward``."""
        spec = self.request.spec
        if not (self.options.backward or self.options.gradcheck):
            return None
        if spec.backward is None:
            hint = f"write it as a table: [{spec.origin.name('backward')}]"
            raise TeenyError(
                "no-backward", f"the op '{spec.name}' has no backward", where=spec.origin.place(), hint=hint
            )
        return self.module if spec.backward.ptx_path == spec.ptx_path else module_of(spec.backward)

    def _judge(self, dims: Mapping[str, int]) -> tuple[Judged, ...]:
        """What is run for a case, checked: the forward, then the backward."""
        found = [judge_plan(self.request.spec, self._plan(dims), self.module, self.host)]
        if self.backward is not None:
            found.append(judge_plan(self.request.spec, self._plan_backward(dims), self.backward, self.host))
            if self.options.gradcheck:
                check_differentiable(Pair(self.request.spec, found[0].plan, found[1].plan))
        return tuple(found)

    def _plan(self, dims: Mapping[str, int], sm: int | None = None) -> Plan:
        request = self.request
        plan = plan_case(request.spec, dims, self.module, request.overrides, sm)
        inits = {name: init for name, init in request.inputs.items() if not self._is_gradient(name)}
        return with_inits(self.checkpoint.fill(plan) if self.checkpoint else plan, inits)

    def _plan_backward(self, dims: Mapping[str, int], sm: int | None = None) -> Plan:
        assert self.backward is not None
        plan = plan_backward(self.request.spec, dims, self.backward, self.request.overrides, sm)
        return with_inits(plan, {name: init for name, init in self.request.inputs.items() if self._is_gradient(name)})

    def _is_gradient(self, name: str) -> bool:
        """Whether ``--input`` is about a buffer that only the backward has."""
        spec = self.request.spec
        grads = {grad_name(buffer.name) for buffer in (*spec.inputs, *spec.params)}
        return self.backward is not None and name in {"grad_output", *grads}

    def _stopping(self, judged: Judged) -> list[Finding]:
        """Show what the rules found; returns what keeps the launch from happening."""
        self.found += judged.findings
        for finding in judged.findings:
            if finding.severity is Severity.ERROR or not self.options.quiet:
                self.console.tell(*problem(finding))
        return [f for f in judged.errors if f.id in LAYOUT_IDS | WIRE_IDS or not self.options.no_check]

    def _astray(self, judged: Judged, device: Device) -> list[Finding]:
        """What would go astray in memory, of a device that does not stop it itself."""
        if device.name == "cpu" or self.options.no_check:
            return []
        found = with_memory(judged, work=_RUN_WORK)
        return self._stopping(replace(found, findings=found.findings[len(judged.findings) :]))

    def _refuse(self, stopped: Sequence[Finding]) -> Exit:
        """Launch nothing, since these findings are errors."""
        self._explain(stopped)
        if self.options.as_json:
            self.console.document(run_document(RunReport(error=stopped[0], findings=tuple(self.found))))
        return Exit.FAILED

    def _explain(self, findings: Sequence[Finding]) -> None:
        """Name the command that says more of them, to somebody who reads along."""
        if self.console.err.tty and not self.options.quiet:
            self.console.tell(*closing(findings))

    def _laid_out(self, judged: list[Judged], device: Device) -> list[Judged]:
        """The plans with parameters where they lie on the device, which may be of another architecture."""
        return [self._placed(one, device.layout_sm(one.module)) for one in judged]

    def _placed(self, judged: Judged, sm: int) -> Judged:
        if sm == parse_target(judged.module.target).sm:
            return judged
        plan = self._plan_backward if judged.plan.backward else self._plan
        return replace(judged, plan=plan(judged.plan.case, sm))

    def _check_saves(self, judged: tuple[Judged, ...], files: dict[str, FileRef]) -> None:
        by_name = {
            spelled: b
            for one in reversed(judged)
            for b in one.plan.buffers
            for name in (b.name, name_of(b))
            for spelled in self._spelled(one.plan, name)
        }
        check_saves([Save(n, f, by_name[n].dtype) for n, f in files.items() if n in by_name], Path())
        if files and len(self.request.cases) > 1:
            raise TeenyError("bad-option", "--save takes one case, and several are run", hint="choose one: --case N")

    def _spelled(self, plan: Plan, name: str) -> tuple[str, ...]:  # noqa: ARG002  (a row of ops needs it)
        """What options call the buffer or output ``name`` of a plan."""
        return (name,)

    def _check_names(self, plans: Sequence[Plan], wanted: Sequence[str]) -> None:
        """Raises TeenyError ``unknown-buffer`` for what options name and no plan has."""
        check_names(plans, wanted, self.request.adhoc)

    def _expectation(self, expect: Expectation, plan: Plan) -> Expectation:  # noqa: ARG002  (as above)
        """What is expected of the outputs of a plan, by their names in it."""
        return expect

    def _tell_device(self, chosen: Chosen) -> None:
        if self.options.quiet:
            return
        if self.options.verbose:
            for line in chosen.gpus:
                self.console.tell(f"teeny: {line}")
        if self.options.device == "auto" or self.options.verbose:
            self.console.tell(f"teeny: {chosen.reason}")

    # --- the launch ---

    def _run(self, device: Device, judged: Judged, how: How) -> Outcome:
        if judged.plan.backward:
            outcome = run_backward(judged, self.outcomes[-1], device, how)
        else:
            outcome = run_case(judged, device, how, keep=self.backward is not None)
        self._tell(outcome)
        return outcome

    def _tell(self, outcome: Outcome) -> None:
        told = (*outcome.execution.findings, *outcome.findings)
        self.found += told
        for finding in told:
            self.console.tell(*problem(finding))

    # --- after it ---

    def _save(self, files: dict[str, FileRef]) -> None:
        outputs = [(outcome.judged.plan, out) for outcome in reversed(self.outcomes) for out in outcome.outputs]
        held = {
            spelled: out
            for plan, out in outputs
            for name in (out.name, out.buffer.name)
            for spelled in self._spelled(plan, name)
        }
        done = save_all([Save(n, f, held[n].buffer.dtype, held[n].array) for n, f in files.items()], Path())
        if not self.options.quiet:
            for path in done:
                self.console.tell(f"saved {path}")

    def _show(self, device: Device) -> None:
        runs = [self._row(outcome) for outcome in self.outcomes]
        error = None
        if self.failed is not None:
            judged, raised = self.failed
            error = raised.finding
            runs.append(RunRow(judged.shown(self.request.adhoc), shared_static=judged.shared_static))
        # Every case compiles, or takes from the cache, the same entries: the first tells which it was.
        compile_ms = sum(outcome.execution.compile_ms for outcome in self.outcomes)
        first = self.outcomes[: self.length]
        cached = bool(first) and all(outcome.execution.cached for outcome in first)
        report = RunReport(
            device.name,
            device.description,
            compile_ms,
            cached,
            tuple(runs),
            error,
            tuple(dict.fromkeys(self.found)),
            self.request.chain is not None,
        )
        if self.options.as_json:
            self.console.document(run_document(report))
        elif not self.options.quiet:
            self.console.show(*run_page(report))
            if self.request.adhoc and self.failed is None and not self.outcomes[-1].outputs:
                self.console.show("", "  no buffer changed")
            if len(self.request.cases) > 1:
                self.console.show("", self._tally())
        if error is not None:
            self.console.tell(*problem(error))
            self._explain([error])

    def _row(self, outcome: Outcome) -> RunRow:
        return RunRow(
            outcome.judged.shown(self.request.adhoc),
            outcome.execution.launch_ms,
            outcome.judged.shared_static,
            tuple(out.summary for out in outcome.outputs),
            tuple(Compared(out.name, out.comparison) for out in outcome.outputs if out.comparison is not None),
            outcome.gradients,
            variables=set_to(outcome.judged.kernel, outcome.judged.module, self.request.variables),
        )

    def _tally(self) -> str:
        compared = [out.comparison for outcome in self.outcomes for out in outcome.outputs if out.comparison]
        wrong = sum(not comparison.ok for comparison in compared)
        cases = sum(not outcome.judged.plan.backward for outcome in self.outcomes)
        said = f"{count(cases, 'case')} of {len(self.request.cases)} run"
        return f"{said}; {count(len(compared), 'comparison')}, {wrong} wrong" if compared else said

    def _wrong_gradients(self) -> bool:
        """Whether differences contradict a gradient; a quiet run says here which."""
        wrong = [one for outcome in self.outcomes for one in outcome.gradients if not one.ok]
        if self.options.quiet and not self.options.as_json:
            for one in wrong:
                message = f"'{one.name}' differs from differences of the forward in {one.mismatches:,} of {one.count:,}"
                self.console.tell(*problem(Finding("gradient-mismatch", f"{message} elements")))
        return bool(wrong)

    def _verdict(self) -> Exit:
        """The exit code; a quiet run says here which outputs are wrong."""
        wrong = [
            (outcome, out)
            for outcome in self.outcomes
            for out in outcome.outputs
            if out.comparison is not None and not out.comparison.ok
        ]
        if self.options.quiet and not self.options.as_json:
            for outcome, out in wrong:
                assert out.comparison is not None
                share = f"{out.comparison.mismatches:,} of {out.comparison.count:,} elements"
                plan = outcome.judged.plan
                where = f"{plan.op} at {case(plan.case)}" if plan.case else plan.op
                message = f"{where}: '{out.name}' differs from its reference in {share}"
                self.console.tell(*problem(Finding("mismatch", message)))
        found = any(outcome.findings for outcome in self.outcomes)
        verdict = Exit.FAILED if wrong or found or self._wrong_gradients() else Exit.OK
        return verdict if self.failed is None else max(verdict, self.failed[1].exit)


def _files(option: str, texts: dict[str, str]) -> dict[str, FileRef]:
    found = {}
    for name, text in texts.items():
        file = parse_file(text)
        if file is None:
            raise TeenyError("bad-option", f"{option} {name}: '{text}' is no array file",
                             hint="files end in .npy, .npz, .bin (and .safetensors to read)")  # fmt: skip
        found[name] = file
    return found


@contextmanager
def _closing(device: Device) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with suppress(TeenyError):  # what went wrong first is what is told
            device.close()
        raise
    device.close()
