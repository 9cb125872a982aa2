"""One case of an op on a device: fill the buffers, execute the plan, look at what came out.

May import the rooms below; numpy is here through ``tensors``, so commands import this module when they run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from teenycli.commands.cases import Judged
from teenycli.devices.base import Device
from teenycli.devices.execute import Execution, execute
from teenycli.dtypes import DTYPES
from teenycli.errors import Finding, Place, TeenyError, did_you_mean
from teenycli.launch.build import init_of
from teenycli.launch.plan import Buffer, Plan
from teenycli.manifest.spec import OpSpec
from teenycli.tensors.arrays import fill
from teenycli.tensors.compare import Comparison, Summary, compare, summarize
from teenycli.tensors.convert import Array, check_size, raw_bytes
from teenycli.tensors.evaluator import Value
from teenycli.tensors.files import FileRef, load
from teenycli.tensors.reference import evaluate_reference


@dataclass(frozen=True)
class Output:
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


@dataclass(frozen=True)
class Outcome:
    """What a run of one case gave."""

    judged: Judged
    execution: Execution
    outputs: tuple[Output, ...]

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


@dataclass(frozen=True)
class Expectation:
    """A file that an output must equal, by ``--expect``, and tolerances that override the op's."""

    files: Mapping[str, FileRef]
    rtol: float | None = None
    atol: float | None = None


def run_case(
    spec: OpSpec,
    judged: Judged,
    device: Device,
    *,
    seed: int,
    timeout: float,
    expect: Expectation,
    adhoc: bool,
    saved: Sequence[str] = (),
) -> Outcome:
    """Run one case.

    Without a manifest (``adhoc``) the outputs are the buffers that changed and those that are ``saved``. Raises what
    filling, the device and the reference raise.
    """
    plan = judged.plan
    arrays = initial_arrays(spec, plan, seed)
    wanted = {*expect.files, *saved}
    everything = adhoc or any(buffer.name in wanted and not buffer.is_output for buffer in plan.buffers)
    execution = execute(plan, judged.module, device, arrays, timeout=timeout, everything=everything)
    shown = [b for b in plan.buffers if b.name in execution.arrays and _is_shown(b, arrays, execution, wanted, adhoc)]
    references = _references(spec, plan, arrays, shown, expect)
    outputs = tuple(_output(spec, b, execution.arrays[b.name], references.get(b.name), expect, adhoc) for b in shown)
    return Outcome(judged, execution, outputs)


def check_names(plan: Plan, wanted: Iterable[str], adhoc: bool) -> None:
    """Raises TeenyError ``unknown-buffer`` for a name that no output (``adhoc``: no buffer) of the plan has."""
    known = [b.name for b in plan.buffers if b.role != "scratch"] + [b.output for b in plan.buffers if b.output]
    for name in wanted:
        if name not in known:
            what = "buffer" if adhoc else "output"
            hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
            raise TeenyError("unknown-buffer", f"the op '{plan.op}' has no {what} '{name}'", hint=hint)


def check_expectations(plan: Plan, expect: Expectation) -> None:
    """Load what outputs are expected to be, before anything runs. Raises what loading raises."""
    for buffer in plan.buffers:
        for name in {buffer.name, name_of(buffer)} & expect.files.keys():
            load(expect.files[name], Path(), buffer.dtype, buffer.shape)


def initial_arrays(spec: OpSpec, plan: Plan, seed: int) -> dict[str, Array]:
    """The first content of every buffer of the plan, by name."""
    total = sum(buffer.nbytes for buffer in plan.buffers)
    check_size(2 * total, f"the buffers of '{plan.op}', {total:,} bytes and as many on the device,")
    numbers: dict[str, Value] = {**plan.case, **plan.consts, **plan.scalars}
    arrays: dict[str, Array] = {}
    for buffer in plan.buffers:
        names = {**numbers, **{name: array for name, array in arrays.items() if " " not in name}}
        init = init_of(buffer)
        try:
            arrays[buffer.name] = fill(_text(init), buffer.dtype, buffer.shape, buffer.name, seed, spec.folder, names)
        except TeenyError as error:
            raise error.at(spec.origin.place(buffer.source.removeprefix(f"{spec.origin.prefix}."))) from None
    return arrays


def _text(init: str | float) -> str | int | float:
    return int(init) if isinstance(init, bool) else init


def name_of(buffer: Buffer) -> str:
    """What the user calls the output in ``buffer``."""
    return buffer.output or buffer.name


def _is_shown(buffer: Buffer, arrays: Mapping[str, Array], execution: Execution, wanted: set[str], adhoc: bool) -> bool:
    if buffer.is_output or wanted & {buffer.name, name_of(buffer)}:
        return True
    return adhoc and bool((raw_bytes(arrays[buffer.name]) != raw_bytes(execution.arrays[buffer.name])).any())


def _references(
    spec: OpSpec, plan: Plan, arrays: Mapping[str, Array], shown: Sequence[Buffer], expect: Expectation
) -> dict[str, Array]:
    """What each output should be, by buffer: the files that the user gave, else the op's reference."""
    found: dict[str, Array] = {}
    results = [buffer for buffer in shown if buffer.is_output]
    if spec.reference is not None and results:
        ordered = sorted(results, key=lambda buffer: _rank(spec, buffer))
        called = [replace(buffer, name=name_of(buffer)) for buffer in ordered]
        values = evaluate_reference(
            spec.reference, _namespace(spec, plan, arrays), spec.folder, called, spec.origin.place("reference")
        )
        found.update({buffer.name: value for buffer, value in zip(ordered, values, strict=True)})
    for buffer in shown:
        file = expect.files.get(name_of(buffer)) or expect.files.get(buffer.name)
        if file is not None:
            found[buffer.name] = load(file, Path(), buffer.dtype, buffer.shape)
    return found


def _rank(spec: OpSpec, buffer: Buffer) -> int:
    """The place of an output in the manifest, which is the order in which a reference returns them."""
    return [out.name for out in spec.results].index(name_of(buffer))


def _namespace(spec: OpSpec, plan: Plan, arrays: Mapping[str, Array]) -> dict[str, Value]:
    """What a reference may name. A scalar has the value that the kernel is passed, rounded to its kind."""
    passed: dict[str, Value] = {}
    for arg, argument in zip(spec.args, plan.launches[0].args, strict=False):
        value = argument.fields[0].value if arg.text in plan.scalars and arg.kind in DTYPES else None
        if isinstance(value, int | float):
            passed[arg.text] = value
    groups = {
        "inputs": [arrays[b.name] for b in plan.buffers if b.role == "input"],
        "params": [arrays[b.name] for b in plan.buffers if b.role == "param"],
    }
    held = {b.name: arrays[b.name] for b in plan.buffers if b.role in ("input", "param")}
    return {**groups, **plan.case, **plan.consts, **plan.scalars, **passed, **held}


def _output(
    spec: OpSpec, buffer: Buffer, array: Array, reference: Array | None, expect: Expectation, adhoc: bool
) -> Output:
    poisoned = buffer.role == "output" and init_of(buffer) == "poison" and not adhoc
    summary = summarize(name_of(buffer), array, buffer.dtype, poisoned=poisoned)
    comparison = None
    if reference is not None:
        rtol, atol = spec.tolerance(buffer.dtype)
        rtol = rtol if expect.rtol is None else expect.rtol
        atol = atol if expect.atol is None else expect.atol
        comparison = compare(array, reference, buffer.dtype, rtol, atol, poisoned=poisoned)
    return Output(name_of(buffer), buffer, array, summary, comparison)
