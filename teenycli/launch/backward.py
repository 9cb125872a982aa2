"""The plan of an op's backward: the forward's buffers as they are after it ran, the gradients, and its own launches.

May import ``arch``, ``errors``, ``manifest``, ``ptx`` and, in this room, everything but ``adhoc``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from teenycli.arch import parse_target
from teenycli.launch.build import buffers_of
from teenycli.launch.cases import Overrides, check_dims
from teenycli.launch.geometry import choose_entry
from teenycli.launch.launches import BUFFER_ALIGN, check_size, launches_of
from teenycli.launch.namespace import Namespace
from teenycli.launch.plan import Buffer, Plan
from teenycli.manifest.spec import BackwardSpec, OpSpec, grad_name
from teenycli.ptx.metadata import metadata_of
from teenycli.ptx.model import Module


def plan_backward(
    spec: OpSpec, case: Mapping[str, int], module: Module, overrides: Overrides | None = None, sm: int | None = None
) -> Plan:
    """The plan of ``spec.backward``, which must be there, at the dims ``case``; ``module`` is its own PTX.

    Inputs, params and output are read, as the forward left them. ``grad_output`` is an input, random where nothing
    says otherwise. The gradients that some argument names are outputs, zeroed at first. Raises what ``plan_case``
    raises.
    """
    kernel = spec.backward
    assert kernel is not None
    overrides = overrides or Overrides()
    dims = check_dims(spec, case, overrides)
    scalars = {name: overrides.scalars.get(name, value) for name, value in spec.scalars.items()}
    forward = Namespace(spec, dims, scalars)
    names = forward.of_backward(kernel)
    entry = choose_entry(kernel, module)
    sm = parse_target(module.target).sm if sm is None else sm
    launches, scratch = launches_of(names, module, entry, metadata_of(module, entry), sm)
    left = [replace(b, role=_role(b), init=None, output=None) for b in buffers_of(forward)]
    named = {name for launch in launches for argument in launch.args for name in argument.buffers}
    grads = [grad for grad in _gradients(spec, kernel, names) if grad.role == "input" or grad.name in named]
    buffers = (*left, *grads, *scratch)
    consts = dict(kernel.consts)
    return Plan(kernel.name, dims, module.source.name, entry.name, buffers, launches, consts, scalars, backward=True)


def _role(buffer: Buffer) -> str:
    return "input" if buffer.role == "output" else buffer.role


def _gradients(spec: OpSpec, kernel: BackwardSpec, names: Namespace) -> Iterator[Buffer]:
    view = names.views["grad_output"]
    elems, stride = view.rows
    source = kernel.origin.name("grad_output_row_stride")
    given = Buffer(
        view.name,
        view.dtype,
        view.shape,
        "input",
        align=BUFFER_ALIGN,
        source=source,
        row_elems=elems,
        row_stride=stride,
    )
    check_size(given, kernel.origin.place())
    yield given
    for each in (*spec.inputs, *spec.params):
        view = names.views[grad_name(each.name)]
        yield Buffer(
            view.name, view.dtype, view.shape, "output", "zeros", align=BUFFER_ALIGN, source=kernel.origin.name("args")
        )
