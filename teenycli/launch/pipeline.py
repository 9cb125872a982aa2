"""Several ops in a row: which output each input takes, at which dims each op runs, and whether both sides fit.

May import ``errors``, ``manifest`` and, in this room, ``build``, ``cases`` and ``plan``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from teenycli.errors import Finding, Place, TeenyError, did_you_mean
from teenycli.launch.build import plan_case
from teenycli.launch.cases import Dims, Overrides, case_dims, check_overrides, dim_names
from teenycli.launch.plan import Buffer, Plan
from teenycli.manifest.spec import OpSpec, PipelineSpec, quote
from teenycli.ptx.model import Module

#: Findings about two ops that do not fit: nothing can be run in spite of them.
WIRE_IDS = frozenset({"wire-shape", "wire-dtype", "wire-row-stride"})


class Step(Struct, frozen=True):
    """An op of a pipeline. ``name`` is the op's, ``NAME#2`` where it stands a second time."""

    name: str
    spec: OpSpec

    @property
    def readable(self) -> tuple[str, ...]:
        """Buffers that an output can be wired to."""
        return tuple(buffer.name for buffer in (*self.spec.inputs, *self.spec.params))


class Wire(Struct, frozen=True):
    """``buffer`` of the step with the index ``step`` is the ``output`` of the step ``source`` before it."""

    step: int
    buffer: str
    source: int
    output: str
    where: Place


class Pipeline(Struct, frozen=True):
    """Steps in order, and the wires between them."""

    spec: PipelineSpec
    steps: tuple[Step, ...]
    wires: tuple[Wire, ...]

    def into(self, step: int) -> tuple[Wire, ...]:
        """The wires that end in a step."""
        return tuple(wire for wire in self.wires if wire.step == step)

    def index(self, name: str) -> int:
        """Raises StopIteration where there is no such step."""
        return next(k for k, step in enumerate(self.steps) if step.name == name)

    def said(self, wire: Wire) -> str:
        """``STEP.OUTPUT`` of a wire."""
        return f"{self.steps[wire.source].name}.{wire.output}"


def pipeline_of(spec: PipelineSpec, ops: Sequence[OpSpec]) -> Pipeline:
    """The pipeline of ``spec``, whose ops these are. Raises TeenyError ``bad-wire``."""
    counts: Counter[str] = Counter()
    steps = []
    for op in ops:
        counts[op.name] += 1
        steps.append(Step(op.name if counts[op.name] == 1 else f"{op.name}#{counts[op.name]}", op))
    explicit = [_explicit(spec, steps, target, source) for target, source in spec.wire.items()]
    wires = []
    for index in range(len(steps)):
        given = [wire for wire in explicit if wire.step == index]
        wires += given
        if index and not any(wire.source == index - 1 for wire in given):
            wires += _by_default(spec, steps, index, {wire.buffer for wire in given})
    return Pipeline(spec, tuple(steps), tuple(wires))


def _explicit(spec: PipelineSpec, steps: Sequence[Step], target: str, source: str) -> Wire:
    where = spec.origin.place(f"wire.{quote(target)}")
    to, buffer = _end(steps, target, where)
    start, output = _end(steps, source, where)
    if buffer not in steps[to].readable:
        raise _no_such(steps[to].name, "input or param", buffer, steps[to].readable, where)
    outputs = [out.name for out in steps[start].spec.results]
    if output not in outputs:
        raise _no_such(steps[start].name, "output", output, outputs, where)
    if start >= to:
        message = f"'{target}' cannot take '{source}': {steps[start].name} does not run before {steps[to].name}"
        raise TeenyError("bad-wire", message, where=where)
    return Wire(to, buffer, start, output, where)


def _end(steps: Sequence[Step], text: str, where: Place) -> tuple[int, str]:
    """Step and buffer of ``STEP.BUFFER``."""
    name, dot, buffer = text.rpartition(".")
    names = [step.name for step in steps]
    if not dot:
        raise TeenyError("bad-wire", f"'{text}' is not OP.BUFFER", where=where, hint=f"the ops are {', '.join(names)}")
    if name not in names:
        hint = did_you_mean(name, names) or f"there are {', '.join(names)}"
        raise TeenyError("bad-wire", f"the pipeline has no op '{name}'", where=where, hint=hint)
    return names.index(name), buffer


def _no_such(step: str, what: str, name: str, known: Sequence[str], where: Place) -> TeenyError:
    hint = did_you_mean(name, known) or (f"there are {', '.join(known)}" if known else None)
    return TeenyError("bad-wire", f"the op '{step}' has no {what} '{name}'", where=where, hint=hint)


def _by_default(spec: PipelineSpec, steps: Sequence[Step], index: int, taken: set[str]) -> list[Wire]:
    """The outputs of the op before: each to the input of its name, else the first output to the first input free."""
    inputs = [buffer.name for buffer in steps[index].spec.inputs if buffer.name not in taken]
    outputs = [out.name for out in steps[index - 1].spec.results]
    where = spec.origin.place("ops")
    pairs = [(name, name) for name in outputs if name in inputs]
    if not pairs and inputs and outputs:
        pairs = [(inputs[0], outputs[0])]
    if not pairs:
        what = f"{steps[index].name} has no input for it" if outputs else f"{steps[index - 1].name} has no output"
        message = f"'{steps[index].name}' takes nothing of '{steps[index - 1].name}' before it: {what}"
        raise TeenyError("bad-wire", message, where=where)
    return [Wire(index, buffer, index - 1, output, where) for buffer, output in pairs]


# --- plans -------------------------------------------------------------------------------------------------------


class Planned(Struct, frozen=True):
    """The plan of each step, named as the step, and what does not fit in the wires into it."""

    plans: tuple[Plan, ...]
    findings: tuple[tuple[Finding, ...], ...]


def plan_pipeline(
    pipeline: Pipeline, modules: Sequence[Module], overrides: Overrides, sms: Sequence[int | None] | None = None
) -> Planned:
    """Plan every step, at dims that fit what it is wired to; ``modules`` and ``sms`` (architectures) are by step.

    Raises what ``plan_case`` raises, and for names that no op has ``unknown-dim`` and ``unknown-scalar``.
    """
    asked = _asked(pipeline, overrides)
    plans: list[Plan] = []
    findings = []
    for index, (step, module) in enumerate(zip(pipeline.steps, modules, strict=True)):
        wires = pipeline.into(index)
        sources = {wire.buffer: output_of(plans[wire.source], wire.output) for wire in wires}
        dims = _dims(pipeline, index, sources, asked[index])
        given = Overrides({name: n for name, n in dims.items() if overrides.dims.get(name) == n}, overrides.scalars)
        planned = partial(plan_case, step.spec, dims, module, given, sms[index] if sms else None)
        try:
            tight = planned()
        except TeenyError as error:
            raise _explained(error, step, _read_off(step.spec, sources)) from None
        rows = {name: each.rows[1:] for name, each in sources.items() if _has_rows_of(tight.buffer(name), each)}
        plan = planned(rows) if rows else tight
        # An op that launches the same whatever a stride is was not told of it.
        told = [name for name, each in rows.items() if planned({name: each}).launches != tight.launches]
        findings.append(tuple(_misfits(pipeline, wires, sources, tight, told)))
        launches = tuple(replace(launch, op=step.name) for launch in plan.launches)
        plans.append(replace(plan, op=step.name, launches=launches, buffers=_filled(plan, wires)))
    return Planned(tuple(plans), tuple(findings))


def _filled(plan: Plan, wires: Sequence[Wire]) -> tuple[Buffer, ...]:
    """The buffers of a plan: what is wired is not filled by an initialiser."""
    wired = {wire.buffer for wire in wires}
    return tuple(replace(buffer, init=None) if buffer.name in wired else buffer for buffer in plan.buffers)


def output_of(plan: Plan, name: str) -> Buffer:
    """The buffer that holds an output, which may be an input's."""
    return next(b for b in plan.buffers if b.is_output and (b.output or b.name) == name)


class _Asked(Struct, frozen=True):
    """Dims that the user asked for: of all ops, and of this one."""

    shared: Mapping[str, int]
    own: Mapping[str, int]


def _asked(pipeline: Pipeline, overrides: Overrides) -> list[_Asked]:
    """What the pipeline's dims and ``--dim`` say for each step. Raises ``unknown-dim`` and ``unknown-scalar``."""
    names = [step.name for step in pipeline.steps]
    specs = [step.spec for step in pipeline.steps]
    shared: dict[str, int] = {}
    own: list[dict[str, int]] = [{} for _ in names]
    for dims, place in ((pipeline.spec.dims, pipeline.spec.origin.place("dims")), (overrides.dims, None)):
        plain: dict[str, int] = {}
        of_steps: list[dict[str, int]] = [{} for _ in names]
        for key, value in dims.items():
            step, dot, name = key.rpartition(".")
            found = of_steps[names.index(step)] if dot and step in names else plain
            found[name if dot and step in names else key] = value
        _known(plain, specs, place)
        for mine, spec, each in zip(of_steps, specs, own, strict=True):
            _known(mine, [spec], place)
            each |= mine
        shared |= plain
    check_overrides(Overrides({}, overrides.scalars), specs)
    return [_Asked(shared, each) for each in own]


def _known(dims: Mapping[str, int], specs: Sequence[OpSpec], place: Place | None) -> None:
    try:
        check_overrides(Overrides(dims), specs)
    except TeenyError as error:
        if place is not None:
            error.finding = error.finding.but(where=place)
        raise


def _dims(pipeline: Pipeline, index: int, sources: Mapping[str, Buffer], asked: _Asked) -> Dims:
    """The op's own dims, over them those read off what it is wired to, over all what the user asked for.

    A dim of that name in an op before is what was meant where both this op's and the wire tell of one: in a row of
    ops, ``N`` of one is often ``K`` of the next.
    """
    spec = pipeline.steps[index].spec
    known = dim_names(spec)
    wired = _read_off(spec, sources)
    before = frozenset[str]().union(*(dim_names(step.spec) for step in pipeline.steps[:index]))
    shared = {name: n for name, n in asked.shared.items() if name in known and not (name in wired and name in before)}
    return case_dims(spec) | wired | shared | dict(asked.own)


def _read_off(spec: OpSpec, sources: Mapping[str, Buffer]) -> Dims:
    """Dims that stand alone as an extent of a wired buffer's shape; one dimension takes all elements."""
    known = dim_names(spec)
    found: Dims = {}
    for buffer in (*spec.inputs, *spec.params):
        if buffer.name not in sources:
            continue
        source = sources[buffer.name]
        extents: Iterable[int] = source.shape if len(buffer.shape) == len(source.shape) else ()
        if len(buffer.shape) == 1:
            extents = [source.size]
        for expression, extent in zip(buffer.shape, extents, strict=False):
            if expression.text in known:
                found.setdefault(expression.text, extent)
    return found


def _explained(error: TeenyError, step: Step, wired: Dims) -> TeenyError:
    """The error, with a note of the dims that nobody wrote."""
    if error.finding.id == "bad-dim" and wired:
        dims = ", ".join(f"{name} = {value}" for name, value in wired.items())
        error.finding = error.finding.but(note=f"read off what '{step.name}' is given: {dims}")
    return error


def _misfits(
    pipeline: Pipeline, wires: Sequence[Wire], sources: Mapping[str, Buffer], plan: Plan, told: Container[str]
) -> Iterable[Finding]:
    for wire in wires:
        buffer, source = plan.buffer(wire.buffer), sources[wire.buffer]
        to, start = f"'{pipeline.steps[wire.step].name}.{wire.buffer}'", f"'{pipeline.said(wire)}'"
        if buffer.dtype != source.dtype:
            message = f"{to} takes {buffer.dtype}, and {start} is {source.dtype}"
            yield Finding("wire-dtype", message, where=wire.where, hint="put an op between them that converts")
        if not _same_elements(buffer, source):
            message = f"{to} has the shape {list(buffer.shape)}, and {start} has {list(source.shape)}"
            hint = "dims that a wire does not tell are the op's own: set them with --dim, or in the pipeline's dims"
            yield Finding("wire-shape", message, where=wire.where, hint=hint)
        elif source.is_padded and wire.buffer not in told:
            _, elems, stride = source.rows
            message = f"{start} is rows of {elems:,} elements, {stride:,} apart, and {to} expects tight rows"
            hint = f"let an argument of {pipeline.steps[wire.step].name} say '{wire.buffer}.row_stride'"
            yield Finding("wire-row-stride", message, where=wire.where, hint=hint)


def _has_rows_of(buffer: Buffer, source: Buffer) -> bool:
    """Whether rows of ``source`` that lie apart are rows of ``buffer``."""
    return source.is_padded and _same_elements(buffer, source) and source.rows[1] == (buffer.shape or (1,))[-1]


def _same_elements(buffer: Buffer, source: Buffer) -> bool:
    """Whether shapes are equal, or one of them is flat."""
    flat = 1 in (len(buffer.shape), len(source.shape))
    return buffer.shape == source.shape or (flat and buffer.size == source.size)
