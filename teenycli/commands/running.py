"""One case of an op on a device: fill the buffers, execute the plan, look at what came out.

May import the rooms below; numpy is here through ``tensors``, so commands import this module when they run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import replace

from teenycli.commands.cases import Judged
from teenycli.devices.base import Device
from teenycli.devices.contents import backward_names, initial_arrays, name_of, reference_arrays, reference_names
from teenycli.devices.execute import Execution, Lease, execute
from teenycli.devices.gradcheck import Pair, check_gradients
from teenycli.devices.variables import initial_globals
from teenycli.errors import Finding, Place, TeenyError, did_you_mean
from teenycli.launch.build import init_of
from teenycli.launch.plan import Buffer, Plan
from teenycli.tensors.compare import Comparison, Summary, compare, summarize
from teenycli.tensors.convert import Array, raw_bytes
from teenycli.tensors.evaluator import Value
from teenycli.tensors.files import FileRef, load
from teenycli.tensors.gradients import GradientCheck


class Output(Struct, frozen=True):
    """One output: its name (an in-place output's own), the buffer, the elements, and what they come to.

    ``comparison`` is None where there is nothing to compare with.
    """

    name: str
    buffer: Buffer
    array: Array
    summary: Summary
    comparison: Comparison | None

    @property
    def unwritten(self) -> int:
        """Elements that no thread wrote; of integers only the comparison can tell."""
        return max(self.summary.unwritten, self.comparison.unwritten if self.comparison else 0)


class Outcome(Struct, frozen=True):
    """What a run of one case gave; ``initial`` is what every buffer held at first, ``gradients`` what
    differences say of the gradients, where that was asked for."""

    judged: Judged
    execution: Execution
    outputs: tuple[Output, ...]
    initial: Mapping[str, Array]
    gradients: tuple[GradientCheck, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the outputs show to be wrong with the launches, but for what the op ignores."""
        plan, ignored = self.judged.plan, self.judged.spec.ignore
        found = [_not_covered(plan, out) for out in self.outputs if out.unwritten]
        return tuple(finding for finding in found if finding.id not in ignored)


def _not_covered(plan: Plan, out: Output) -> Finding:
    return Finding(
        "output-not-covered",
        f"{out.unwritten:,} of {out.array.size:,} elements of '{out.name}' still hold the bytes 0xFF from before the "
        f"launch: no thread wrote there",
        where=Place(key=f"op {plan.op}"),
        hint='does the grid, or the count of launches, cover the output? A kernel that adds to it wants init = "zeros"',
    )


class Expectation(Struct, frozen=True):
    """A file that an output must equal, by ``--expect``, and tolerances that override the op's."""

    files: Mapping[str, FileRef]
    rtol: float | None = None
    atol: float | None = None


class How(Struct, frozen=True):
    """How a case is run: the options that all have in common.

    ``saved`` are names of outputs to be saved. Without a manifest (``adhoc``) the outputs are the buffers that changed
    and those that are saved. ``variables`` are initialisers of variables of the PTX, by name.
    """

    seed: int
    timeout: float
    expect: Expectation
    adhoc: bool = False
    saved: Sequence[str] = ()
    gradcheck: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)


def run_case(
    judged: Judged,
    device: Device,
    how: How,
    *,
    keep: bool = False,
    given: Mapping[str, Array] = MappingProxyType({}),
    lease: Lease | None = None,
) -> Outcome:
    """Run one case; ``keep`` brings all buffers back, as a backward wants them.

    ``given`` is what buffers hold that another op filled, and ``lease`` says which of them are on the device already.
    Raises what filling, the device and the reference raise.
    """
    spec, plan = judged.spec, judged.plan
    arrays = initial_arrays(spec, plan, how.seed, given, copies=_copies(device))
    wanted = {*how.expect.files, *how.saved}
    some = any(buffer.name in wanted and not buffer.is_output for buffer in plan.buffers)
    everything = keep or how.adhoc or some
    variables = initial_globals(judged.kernel, judged.module, how.seed, how.variables)
    execution = execute(
        plan, judged.module, device, arrays, timeout=how.timeout, everything=everything, lease=lease,
        variables=variables,
    )  # fmt: skip
    named = reference_names(spec, plan, arrays)
    return _outcome(judged, execution, arrays, named, how)


def run_backward(judged: Judged, forward: Outcome, device: Device, how: How) -> Outcome:
    """Run the backward of the case that ``forward`` came from, with all its buffers kept.

    Inputs, params and the output are as the forward left them; a reference is called with inputs and params as they
    were before it, and with what it gave. Raises what ``run_case`` raises.
    """
    spec, plan = judged.spec, judged.plan
    arrays = initial_arrays(spec, plan, how.seed, forward.execution.arrays, copies=_copies(device))
    variables = initial_globals(judged.kernel, judged.module, how.seed, how.variables)
    execution = execute(plan, judged.module, device, arrays, timeout=how.timeout, variables=variables)
    pair = Pair(spec, forward.judged.plan, plan)
    named = backward_names(spec, plan, arrays, forward.initial)
    outcome = _outcome(judged, execution, arrays, named, how)
    if not how.gradcheck:
        return outcome
    checked = check_gradients(
        pair,
        forward.judged.module,
        device,
        forward.initial,
        arrays["grad_output"],
        execution.arrays,
        how.timeout,
        initial_globals(spec, forward.judged.module, how.seed, how.variables),
    )
    return replace(outcome, gradients=checked)


def _outcome(
    judged: Judged, execution: Execution, arrays: Mapping[str, Array], named: dict[str, Value], how: How
) -> Outcome:
    plan, wanted = judged.plan, {*how.expect.files, *how.saved}
    shown = [
        b for b in plan.buffers if b.name in execution.arrays and _is_shown(b, arrays, execution, wanted, how.adhoc)
    ]
    references = _references(judged, named, shown, how.expect)
    outputs = tuple(_output(judged, b, execution.arrays[b.name], references.get(b.name), how) for b in shown)
    return Outcome(judged, execution, outputs, arrays)


def check_names(plans: Sequence[Plan], wanted: Iterable[str], adhoc: bool) -> None:
    """Raises TeenyError ``unknown-buffer`` for a name that no output (``adhoc``: no buffer) of the plans has."""
    buffers = [buffer for plan in plans for buffer in plan.buffers]
    known = list(
        dict.fromkeys([b.name for b in buffers if b.role != "scratch"] + [b.output for b in buffers if b.output])
    )
    for name in wanted:
        if name not in known:
            what = "buffer" if adhoc else "output"
            hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
            raise TeenyError("unknown-buffer", f"the op '{plans[0].op}' has no {what} '{name}'", hint=hint)


def check_expectations(plan: Plan, expect: Expectation) -> None:
    """Load what outputs are expected to be, before anything runs. Raises what loading raises."""
    for buffer in plan.buffers:
        for name in {buffer.name, name_of(buffer)} & expect.files.keys():
            load(expect.files[name], Path(), buffer.dtype, buffer.shape)


def _is_shown(buffer: Buffer, arrays: Mapping[str, Array], execution: Execution, wanted: set[str], adhoc: bool) -> bool:
    if buffer.is_output or wanted & {buffer.name, name_of(buffer)}:
        return True
    return adhoc and bool((raw_bytes(arrays[buffer.name]) != raw_bytes(execution.arrays[buffer.name])).any())


def _references(
    judged: Judged, named: Mapping[str, Value], shown: Sequence[Buffer], expect: Expectation
) -> dict[str, Array]:
    """What each output should be, by buffer: the files that the user gave, else the op's reference."""
    found = reference_arrays(judged.spec, judged.plan, named)
    for buffer in shown:
        file = expect.files.get(name_of(buffer)) or expect.files.get(buffer.name)
        if file is not None:
            found[buffer.name] = load(file, Path(), buffer.dtype, buffer.shape)
    return found


def _output(judged: Judged, buffer: Buffer, array: Array, reference: Array | None, how: How) -> Output:
    poisoned = buffer.role == "output" and init_of(buffer) == "poison" and not how.adhoc
    summary = summarize(name_of(buffer), array, buffer.dtype, poisoned=poisoned)
    comparison = None
    if reference is not None:
        rtol, atol = judged.kernel.tolerance(buffer.dtype)
        rtol = rtol if how.expect.rtol is None else how.expect.rtol
        atol = atol if how.expect.atol is None else how.expect.atol
        comparison = compare(array, reference, buffer.dtype, rtol, atol, poisoned=poisoned)
    return Output(name_of(buffer), buffer, array, summary, comparison)


def _copies(device: Device) -> int:
    """How often this machine's memory holds what a buffer does."""
    return 2 if device.name == "cpu" else 1
