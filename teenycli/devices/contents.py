"""What the buffers of a plan hold before it runs, and what its reference says that the outputs hold after.

May import ``dtypes``, ``errors``, ``launch``, ``manifest.spec`` and ``tensors``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec.structs import replace

from teenycli.dtypes import DTYPES
from teenycli.errors import TeenyError
from teenycli.launch.build import init_of
from teenycli.launch.plan import Buffer, Plan
from teenycli.manifest.spec import OpSpec
from teenycli.tensors.arrays import fill
from teenycli.tensors.convert import Array, check_size
from teenycli.tensors.evaluator import Value
from teenycli.tensors.reference import evaluate_reference


def initial_arrays(
    spec: OpSpec, plan: Plan, seed: int, given: Mapping[str, Array] = MappingProxyType({}), *, copies: int = 2
) -> dict[str, Array]:
    """The first content of every buffer of the plan, by name: those ``given``, and the others as they say.

    This machine's memory will hold so many ``copies`` of it all: another one where the device's memory is this one too.
    """
    total = sum(buffer.nbytes for buffer in plan.buffers)
    twice = f", {total:,} bytes and as many on the CPU device" if copies == 2 else ""
    check_size(copies * total, f"what the buffers of '{plan.op}' hold{twice},")
    numbers: dict[str, Value] = {**plan.case, **plan.consts, **plan.scalars}
    arrays: dict[str, Array] = {}
    for buffer in plan.buffers:
        if buffer.name in given:
            arrays[buffer.name] = given[buffer.name]
            continue
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


def reference_names(spec: OpSpec, plan: Plan, arrays: Mapping[str, Array]) -> dict[str, Value]:
    """What a reference may name. A scalar has the value that the kernel is passed, rounded to its kind."""
    passed: dict[str, Value] = {}
    for arg, argument in zip(spec.kernel(plan.backward).args, plan.launches[0].args, strict=False):
        value = argument.fields[0].value if arg.text in plan.scalars and arg.kind in DTYPES else None
        if isinstance(value, int | float):
            passed[arg.text] = value
    groups = {role: [arrays[b.name] for b in each] for role, each in (("inputs", spec.inputs), ("params", spec.params))}
    held = {b.name: arrays[b.name] for b in (*spec.inputs, *spec.params)}
    return {**groups, **plan.case, **plan.consts, **plan.scalars, **passed, **held}


def backward_names(
    spec: OpSpec, plan: Plan, arrays: Mapping[str, Array], initial: Mapping[str, Array]
) -> dict[str, Value]:
    """What the reference of a backward may name: what its buffers hold (``arrays``), but inputs and params as they were
    before the forward (``initial``)."""
    out = spec.results[0]
    output = arrays[out.inout or out.name]
    named = {out.name: output, **reference_names(spec, plan, {**arrays, **initial})}
    return named | {"output": output, "grad_output": arrays["grad_output"]}


def reference_arrays(spec: OpSpec, plan: Plan, named: Mapping[str, Value]) -> dict[str, Array]:
    """What each output should be, by buffer, where the op has a reference. Raises what evaluating it raises."""
    kernel = spec.kernel(plan.backward)
    results = [buffer for buffer in plan.buffers if buffer.is_output]
    if kernel.reference is None or not results:
        return {}
    ordered = results if plan.backward else sorted(results, key=lambda each: _rank(spec, each))
    called = [replace(buffer, name=name_of(buffer)) for buffer in ordered]
    values = evaluate_reference(kernel.reference, named, kernel.folder, called, kernel.origin.place("reference"))
    return {buffer.name: value for buffer, value in zip(ordered, values, strict=True)}


def _rank(spec: OpSpec, buffer: Buffer) -> int:
    """The place of an output in the manifest, which is the order in which a reference returns them."""
    return [out.name for out in spec.results].index(name_of(buffer))
