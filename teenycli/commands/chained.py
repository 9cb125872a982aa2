"""``teeny run A B C``, or of a pipeline of the manifest: ops in a row, outputs of some being inputs of others.

May import the rooms below; numpy is here through ``session``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from msgspec.structs import replace

from teenycli.arch import parse_target
from teenycli.commands.cases import Chain, Judged, judge_chain
from teenycli.commands.request import Options, Request
from teenycli.commands.running import Expectation, How, Outcome, run_case
from teenycli.commands.session import Session
from teenycli.devices.base import Device
from teenycli.devices.contents import name_of
from teenycli.devices.residents import Residents
from teenycli.errors import Place, TeenyError, did_you_mean
from teenycli.launch.pipeline import Wire, output_of
from teenycli.launch.plan import Plan
from teenycli.report.rows import RunRow
from teenycli.tensors.convert import Array


def session_of(options: Options, request: Request) -> Session:
    """The session that runs what is asked for. Raises what it cannot be made for."""
    return Session(options, request) if request.chain is None else ChainSession(options, request, request.chain)


class ChainSession(Session):
    """One ``teeny run`` of several ops in a row.

    Options call buffers ``OP.NAME``; a bare name is an output of the last op, or an input of the first that has it.
    """

    def __init__(self, options: Options, request: Request, chain: Chain) -> None:
        super().__init__(options, request)
        self.chain = chain
        self.pipeline = chain.pipeline
        self.steps = [step.name for step in chain.pipeline.steps]
        self.length = len(self.steps)
        self.inits = self._inits()
        self.residents: Residents | None = None

    # --- before the launch ---

    def _inits(self) -> list[dict[str, str]]:
        """What ``--input`` says, by step. Raises TeenyError ``bad-option`` of a buffer that another op fills."""
        found: list[dict[str, str]] = [{} for _ in self.steps]
        for text, init in self.request.inputs.items():
            step, dot, name = text.rpartition(".")
            if dot and step in self.steps:
                index = self.steps.index(step)
            else:
                name, having = text, [k for k, each in enumerate(self.pipeline.steps) if text in each.readable]
                index = having[0] if having else 0
            wire = next((wire for wire in self.pipeline.into(index) if wire.buffer == name), None)
            if wire is not None:
                message = f"'{name}' of '{self.steps[index]}' is filled by '{self.pipeline.said(wire)}'"
                raise TeenyError("bad-option", message, where=Place(key=f"--input {text}"))
            found[index][name] = init
        return found

    def _judge(self, dims: Mapping[str, int]) -> tuple[Judged, ...]:  # noqa: ARG002  (a session's)
        """What is run, checked: every op. Dims are the pipeline's business."""
        return judge_chain(self.chain, self.request.overrides, self.inits, host=self.host)

    def _laid_out(self, judged: list[Judged], device: Device) -> list[Judged]:
        sms = [device.layout_sm(one.module) for one in judged]
        if sms != [parse_target(one.module.target).sm for one in judged]:
            again = judge_chain(self.chain, self.request.overrides, self.inits, sms)
            judged = [replace(one, plan=other.plan) for one, other in zip(judged, again, strict=True)]
        self.residents = Residents(self.pipeline, [one.plan for one in judged], device)
        return judged

    def _spelled(self, plan: Plan, name: str) -> tuple[str, ...]:
        qualified = f"{plan.op}.{name}"
        return (qualified, name) if plan.op == self.steps[-1] else (qualified,)

    def _check_names(self, plans: Sequence[Plan], wanted: Sequence[str]) -> None:
        known = [
            spelled
            for plan in plans
            for buffer in plan.buffers
            if buffer.role != "scratch"
            for name in dict.fromkeys((buffer.name, name_of(buffer)))
            for spelled in self._spelled(plan, name)
        ]
        for name in wanted:
            if name not in known:
                outputs = [f"{plan.op}.{name_of(b)}" for plan in plans for b in plan.buffers if b.is_output]
                hint = did_you_mean(name, known) or f"outputs are {', '.join(outputs)}"
                raise TeenyError("unknown-buffer", f"no op of the row has an output '{name}'", hint=hint)

    def _expectation(self, expect: Expectation, plan: Plan) -> Expectation:
        names = self._names_of(plan, expect.files)
        return replace(expect, files={name: expect.files[spelled] for spelled, name in names.items()})

    def _names_of(self, plan: Plan, wanted: Iterable[str]) -> dict[str, str]:
        """Of ``wanted``, what is of this plan: its names in the plan."""
        names = {name for buffer in plan.buffers for name in (buffer.name, name_of(buffer))}
        spelled = {text: name for name in names for text in self._spelled(plan, name)}
        return {text: spelled[text] for text in wanted if text in spelled}

    # --- the launch ---

    def _run(self, device: Device, judged: Judged, how: How) -> Outcome:
        assert self.residents is not None
        step = self.steps.index(judged.plan.op)
        saved = tuple(self._names_of(judged.plan, how.saved).values())
        how = replace(how, expect=self._expectation(how.expect, judged.plan), saved=saved)
        given = {wire.buffer: self._activation(wire, judged.plan) for wire in self.pipeline.into(step)}
        lease = self.residents.lease(step)
        try:
            outcome = run_case(judged, device, how, given=given, lease=lease)
        except TeenyError:
            with suppress(TeenyError):  # what went wrong first is what is told
                self.residents.close()
            raise
        self.residents.after(step, lease)
        self._tell(outcome)
        return outcome

    def _activation(self, wire: Wire, plan: Plan) -> Array:
        """What the output of a wire came to, in the shape of the buffer that takes it."""
        source = self.outcomes[wire.source]
        array = source.execution.arrays[output_of(source.judged.plan, wire.output).name]
        return array.reshape(plan.buffer(wire.buffer).shape)

    def _row(self, outcome: Outcome) -> RunRow:
        step = self.steps.index(outcome.judged.plan.op)
        wired = {wire.buffer: self.pipeline.said(wire) for wire in self.pipeline.into(step)}
        brief = step < len(self.steps) - 1 and not self.options.verbose
        return replace(super()._row(outcome), wired=wired, brief=brief)
