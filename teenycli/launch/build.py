"""The plan of an op at one case: :func:`plan_case`, or :func:`build_plan` where entry and metadata are known.

A plan is made also where it is wrong in a way that checks can name (too few arguments, an empty grid): arguments
without a parameter have offset None. What makes it impossible is an error.

How ``run`` gets what a plan does not spell out: a buffer whose ``init`` is None is filled as ``init_of`` says, which
knows the default of its role; an output's tolerance is ``OpSpec.tolerance`` of the buffer's dtype; the reference is
``OpSpec.reference`` as written.

May import ``arch``, ``errors``, ``manifest``, ``ptx`` and, in this room, everything but ``adhoc``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec.structs import replace

from teenycli.arch import parse_target
from teenycli.errors import Place, TeenyError, did_you_mean
from teenycli.launch.cases import Overrides, check_dims
from teenycli.launch.geometry import choose_entry
from teenycli.launch.launches import BUFFER_ALIGN, check_size, launches_of
from teenycli.launch.namespace import Namespace, Rows
from teenycli.launch.plan import Buffer, Plan
from teenycli.manifest.spec import DEFAULT_INITS, Init, OpSpec, OutputSpec
from teenycli.ptx.metadata import Metadata, metadata_of
from teenycli.ptx.model import Function, Module


def plan_case(
    spec: OpSpec,
    case: Mapping[str, int],
    module: Module,
    overrides: Overrides | None = None,
    sm: int | None = None,
    rows: Rows = MappingProxyType({}),
) -> Plan:
    """The plan of ``spec`` at the dims ``case``, with the entry that the op means in ``module``.

    ``sm`` is the architecture that parameters are laid out for, the module's ``.target`` when None. ``rows`` are those
    of inputs and params that another op lays out (elements, and from one to the next). Raises what
    ``choose_entry``, ``metadata_of`` and :func:`build_plan` raise.
    """
    entry = choose_entry(spec, module)
    metadata = metadata_of(module, entry)
    sm = parse_target(module.target).sm if sm is None else sm
    return build_plan(spec, case, module, entry, metadata, overrides, sm=sm, rows=rows)


def build_plan(
    spec: OpSpec,
    case: Mapping[str, int],
    module: Module,
    entry: Function,
    metadata: Metadata,
    overrides: Overrides | None = None,
    *,
    sm: int,
    rows: Rows = MappingProxyType({}),
) -> Plan:
    """The plan of launching ``entry`` for ``spec`` at the dims ``case`` (of ``cases_of``).

    Raises TeenyError, placed at the key or option: ``bad-dim``, ``missing-dim``; what expressions raise; ``bad-shape``,
    ``buffer-too-large``; ``bad-argument``, ``value-out-of-range``; and what ``launches_of`` raises.
    """
    overrides = overrides or Overrides()
    dims = check_dims(spec, case, overrides)
    scalars = {name: overrides.scalars.get(name, value) for name, value in spec.scalars.items()}
    names = Namespace(spec, dims, scalars, rows)
    buffers = buffers_of(names)
    launches, scratch = launches_of(names, module, entry, metadata, sm)
    consts = dict(spec.consts)
    return Plan(spec.name, dims, module.source.name, entry.name, (*buffers, *scratch), launches, consts, scalars)


def init_of(buffer: Buffer) -> Init:
    """What ``buffer`` is filled with: its own ``init``, or the default of its role."""
    return DEFAULT_INITS[buffer.role] if buffer.init is None else buffer.init


def with_inits(plan: Plan, inits: Mapping[str, Init]) -> Plan:
    """``plan`` with the initialisers ``inits`` by buffer name, as ``--input`` gives them.

    Raises TeenyError ``unknown-buffer``.
    """
    named = {name: buffer for buffer in plan.buffers for name in (buffer.name, buffer.output) if name is not None}
    chosen: dict[str, Init] = {}
    for name, init in inits.items():
        if name not in named or named[name].role == "scratch":
            known = [known for known, buffer in named.items() if buffer.role != "scratch"]
            hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
            where = Place(key=f"--input {name}")
            raise TeenyError("unknown-buffer", f"the op {plan.op} has no buffer '{name}'", where=where, hint=hint)
        chosen[named[name].name] = init
    buffers = tuple(
        replace(buffer, init=chosen[buffer.name], source=f"--input {buffer.name}") if buffer.name in chosen else buffer
        for buffer in plan.buffers
    )
    return replace(plan, buffers=buffers)


def buffers_of(names: Namespace) -> list[Buffer]:
    """The buffers of an op, an output in place being its input's. Raises TeenyError ``bad-shape``,
    ``buffer-too-large``, and what expressions raise."""
    spec = names.spec
    outputs = {out.inout: out for out in spec.results if out.inout is not None}
    buffers: list[Buffer] = []
    for role, key, buffer in spec.buffers():
        view = names.views[buffer.name]
        if isinstance(buffer, OutputSpec) and buffer.inout is not None:
            given = None if buffer.shape is None else names.extents(buffer.shape, f"{key}.shape")
            if given not in (None, view.shape):
                message = f"the shape is {list(given or ())}, but the buffer '{view.name}' has {list(view.shape)}"
                raise TeenyError("bad-shape", message, where=spec.origin.place(f"{key}.shape"))
            continue
        in_place = outputs.get(buffer.name)
        init = buffer.init if in_place is None or in_place.init is None else in_place.init
        elems, stride = view.rows if role == "output" or buffer.name in names.rows else (None, None)
        made = Buffer(
            buffer.name, view.dtype, view.shape, role, init, in_place.name if in_place else None, BUFFER_ALIGN,
            spec.origin.name(key), elems, stride,
        )  # fmt: skip
        check_size(made, spec.origin.place(f"{key}.shape"))
        buffers.append(made)
    return buffers
