"""One case of an op, or of its backward, ready to be run: what buffers hold, what should come out, what is wrong.

May import ``dtypes``, ``errors``, ``exits``, ``launch``, ``manifest.spec``, ``tensors``, ``devices.contents``,
``devices.execute``, and numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from teenycli.devices.contents import name_of
from teenycli.devices.execute import Execution
from teenycli.dtypes import Kind
from teenycli.errors import Finding, TeenyError
from teenycli.exits import Exit
from teenycli.launch.build import init_of
from teenycli.launch.plan import Buffer, Plan
from teenycli.manifest.spec import KernelSpec, OpSpec
from teenycli.tensors.arrays import fill
from teenycli.tensors.compare import Comparison, Sample, compare
from teenycli.tensors.convert import Array, index_of, raw_bytes, round_to, widen

#: What outputs hold before the second run: a byte that the first poison is not.
OTHER_POISON = 0x5A
#: How much further than the op allows a result may be off, at dims of our choice: sums may be longer there.
SLACK = 4.0

#: Runs a plan over the contents of its buffers, and brings all of them back.
Run = Callable[[Plan, Mapping[str, Array]], Execution]


class Trial(Struct, frozen=True):
    """A plan with what its buffers hold at first (``arrays``) and what its outputs should hold (``expected``, by
    buffer; empty without a reference). ``shown`` are the dims in words, ``own`` says that they are the op's own."""

    spec: OpSpec
    plan: Plan
    shown: str
    own: bool
    arrays: Mapping[str, Array]
    expected: Mapping[str, Array]

    @property
    def kernel(self) -> KernelSpec:
        return self.spec.kernel(self.plan.backward)

    @property
    def at(self) -> str:
        return f"at {self.shown}: " if self.shown else ""


class Outcome(Struct, frozen=True):
    """What a trial showed: findings, and all buffers after the run (None where it did not come to its end)."""

    findings: tuple[Finding, ...]
    arrays: Mapping[str, Array] | None = None


def try_plan(trial: Trial, plan: Plan, run: Run) -> Outcome:
    """Run ``plan``, the trial's own or one with other arguments. Raises what the device raises of what it cannot run;
    faults of the kernel are findings."""
    try:
        after = run(plan, trial.arrays).arrays
        unwritten = {
            buffer.name: where for buffer, where in _unwritten(trial, plan, after, run) if np.count_nonzero(where)
        }
    except TeenyError as error:
        if error.exit is not Exit.FAILED:
            raise
        return Outcome((_fault(trial, error.finding),))
    found = [_not_written(trial, plan.buffer(name), where) for name, where in unwritten.items()]
    found += _changed_inputs(trial, plan, after)
    for name, expected in trial.expected.items():
        compared = _compared(trial, plan.buffer(name), after[name], expected)
        if compared.mismatches > np.count_nonzero(unwritten.get(name, False)):
            found.append(_mismatch(trial, plan.buffer(name), compared))
    return Outcome(tuple(found), after)


def _fault(trial: Trial, finding: Finding) -> Finding:
    return finding.but(message=f"{trial.at}{finding.message}")


# --- elements that no thread writes ------------------------------------------------------------------------------


def _unwritten(
    trial: Trial, plan: Plan, after: Mapping[str, Array], run: Run
) -> Iterator[tuple[Buffer, npt.NDArray[np.bool_]]]:
    """Which elements of each output, flat, held both of two poisons after a run that began with it.

    Outputs in place, and those that the manifest initialises, are left out.
    """
    poisoned = [b for b in plan.buffers if b.role == "output" and init_of(b) == "poison" and b.name in after]
    suspect = {b.name: raw_bytes(after[b.name]) == 0xFF for b in poisoned}
    if not any(where.any() for where in suspect.values()):
        return
    other = {b.name: np.full_like(raw_bytes(after[b.name]), OTHER_POISON) for b in poisoned}
    again = run(plan, {**trial.arrays, **{b.name: _as(other[b.name], after[b.name]) for b in poisoned}}).arrays
    for buffer in poisoned:
        both = suspect[buffer.name] & (raw_bytes(again[buffer.name]) == OTHER_POISON)
        yield buffer, both.reshape(-1, buffer.dtype.size).any(axis=1)


def _as(raw: npt.NDArray[np.uint8], like: Array) -> Array:
    return raw.view(like.dtype).reshape(like.shape)


def _not_written(trial: Trial, buffer: Buffer, where: npt.NDArray[np.bool_]) -> Finding:
    first = index_of(int(np.argmax(where)), buffer.shape)
    return Finding(
        "probe-not-written",
        f"{trial.at}{np.count_nonzero(where):,} of {where.size:,} elements of '{name_of(buffer)}' are written by no "
        f"thread, the first at {list(first)}",
        where=trial.kernel.origin.place("grid"),
        hint='does the grid, or the count of launches, cover the output? A kernel that adds to it wants init = "zeros"',
    )


# --- inputs that change, results that are wrong ------------------------------------------------------------------


def _changed_inputs(trial: Trial, plan: Plan, after: Mapping[str, Array]) -> Iterator[Finding]:
    for buffer in plan.buffers:
        if buffer.is_output or buffer.role not in ("input", "param"):
            continue
        changed = raw_bytes(trial.arrays[buffer.name]) != raw_bytes(after[buffer.name])
        if changed.any():
            elements = changed.reshape(-1, buffer.dtype.size).any(axis=1)
            first = index_of(int(np.argmax(elements)), buffer.shape)
            yield Finding(
                "probe-input-changed",
                f"{trial.at}{np.count_nonzero(elements):,} of {elements.size:,} elements of the {buffer.role} "
                f"'{buffer.name}' are changed, the first at {list(first)}",
                where=trial.kernel.origin.place("args"),
                hint=f'pass an output there, or say that it is one: output = {{ name = …, inout = "{buffer.name}" }}',
            )


def _compared(trial: Trial, buffer: Buffer, result: Array, expected: Array) -> Comparison:
    slack = 1.0 if trial.own else SLACK
    rtol, atol = (slack * number for number in trial.kernel.tolerance(buffer.dtype))
    return compare(result, expected, buffer.dtype, rtol, atol, poisoned=False)


def _mismatch(trial: Trial, buffer: Buffer, compared: Comparison) -> Finding:
    worst = compared.worst or compared.first
    shown = f"; at {list(worst.index)} it is {_figures(worst)}" if worst is not None else ""
    return Finding(
        "probe-mismatch",
        f"{trial.at}'{name_of(buffer)}' differs from its reference in {compared.mismatches:,} of {compared.count:,} "
        f"elements{shown}",
        where=trial.kernel.origin.place("args"),
    )


def _figures(sample: Sample) -> str:
    result, reference = (f"{n:.6g}" if isinstance(n, float) else str(n) for n in (sample.result, sample.reference))
    return f"{result} and should be {reference}"


# --- data --------------------------------------------------------------------------------------------------------


def probing_data(spec: OpSpec, plan: Plan, seed: int, *, gentle: bool, faint: bool) -> dict[str, Array]:
    """What buffers without an ``init`` hold in place of their defaults, so that no two pass for each other.

    Params of floats are random in [0.25, 1.25), which variances and scales can be, and not zero. Integers may be
    indices of what is smaller now than the op's dims: where it is to be ``gentle``, those of inputs are below every
    extent. Integers of params stay zero, as counters and locks want them. Where it is to be ``faint``, random floats of
    inputs are below 2**-8.
    """
    below = min((extent for buffer in plan.buffers for extent in buffer.shape), default=1)
    given: dict[str, Array] = {}
    for buffer in plan.buffers:
        if buffer.init is not None or buffer.role not in ("input", "param") or buffer.dtype.kind is Kind.PTR:
            continue
        values = fill("random", buffer.dtype, buffer.shape, buffer.name, seed, spec.folder)
        if buffer.role == "param" and buffer.dtype.is_float:
            given[buffer.name] = round_to(0.75 + widen(values) / 2, buffer.dtype)
        elif buffer.role == "input" and buffer.dtype.is_float and faint:
            given[buffer.name] = round_to(widen(values) / 256, buffer.dtype)
        elif buffer.role == "input" and buffer.dtype.is_integer and gentle:
            given[buffer.name] = (values % below).astype(values.dtype)
    return given


def may_be_gentle(plan: Plan) -> bool:
    """Whether ``probing_data`` knows gentler data for a plan."""
    return any(b.init is None and b.role == "input" and b.dtype.is_integer for b in plan.buffers)
