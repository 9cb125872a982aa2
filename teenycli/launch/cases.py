"""Dims of a case, and what ``--dim`` and ``--set`` lay over them.

May import ``errors``, ``manifest`` and, in this room, ``values``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from teenycli.errors import Place, TeenyError, did_you_mean
from teenycli.launch.values import Number, parse_integer, parse_number
from teenycli.manifest.spec import RESERVED, DimSpec, OpSpec

Dims = dict[str, int]


class Overrides(Struct, frozen=True):
    """Values from the command line by name: ``--dim NAME=INT`` and ``--set NAME=VALUE``."""

    dims: Mapping[str, int] = field(default_factory=dict)
    scalars: Mapping[str, Number] = field(default_factory=dict)


def parse_overrides(dims: Iterable[str] = (), scalars: Iterable[str] = ()) -> Overrides:
    """Overrides from the texts ``NAME=INT`` and ``NAME=VALUE``; the last one of a name holds.

    Raises TeenyError ``bad-option``.
    """
    values: dict[str, int] = {}
    for text in dims:
        name, value = _pair("--dim", text, "INT")
        number = parse_integer(value)
        if number is None:
            raise TeenyError("bad-option", f"'{value}' is no integer", where=Place(key=f"--dim {name}"))
        values[name] = number
    others: dict[str, Number] = {}
    for text in scalars:
        name, value = _pair("--set", text, "VALUE")
        other = parse_number(value)
        if other is None:
            raise TeenyError("bad-option", f"'{value}' is no number", where=Place(key=f"--set {name}"))
        others[name] = other
    return Overrides(values, others)


def _pair(option: str, text: str, what: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise TeenyError("bad-option", f"'{text}' is not NAME={what}", where=Place(key=option))
    return name.strip(), value


def dim_names(spec: OpSpec) -> frozenset[str]:
    """Names that ``--dim`` may set: dims, dims that only cases set, and names that expressions read and nothing
    defines."""
    read = frozenset[str]().union(*(expression.names for _, expression in spec.expressions()))
    return frozenset(spec.dims) | (read - spec.names() - RESERVED)


def check_overrides(overrides: Overrides, specs: Sequence[OpSpec]) -> None:
    """Raises TeenyError ``unknown-dim`` or ``unknown-scalar`` when no op of ``specs`` knows a name."""
    dims = frozenset[str]().union(*(dim_names(spec) for spec in specs))
    scalars = frozenset[str]().union(*(spec.scalars for spec in specs))
    consts = frozenset[str]().union(*(spec.consts for spec in specs))
    for what, option, given, known, other, other_option in (
        ("dim", "--dim", overrides.dims, dims, scalars, "--set"),
        ("scalar", "--set", overrides.scalars, scalars, dims, "--dim"),
    ):
        for name in given:
            if name in known:
                continue
            if name in other:
                hint: str | None = f"it is set with {other_option} {name}=…"
            elif name in consts:
                hint = f"'{name}' is a const: it is compiled into the PTX"
            else:
                hint = did_you_mean(name, known) or (f"there are {', '.join(sorted(known))}" if known else None)
            message = f"no selected op has a {what} '{name}'"
            raise TeenyError(f"unknown-{what}", message, where=Place(key=f"{option} {name}"), hint=hint)


def overrides_for(specs: Sequence[OpSpec], overrides: Overrides) -> Overrides:
    """Of ``overrides``, what any of ``specs`` knows, and the dims of one step of a pipeline (``STEP.DIM``)."""
    dims = frozenset[str]().union(*(dim_names(spec) for spec in specs))
    scalars = frozenset[str]().union(*(spec.scalars for spec in specs))
    return Overrides(
        {name: value for name, value in overrides.dims.items() if name in dims or "." in name},
        {name: value for name, value in overrides.scalars.items() if name in scalars},
    )


def case_dims(spec: OpSpec, index: int | None = None, overrides: Overrides | None = None) -> Dims:
    """Dims of case ``index`` (from 0), or of the op itself for None: dims, the case over them, ``--dim`` over all.

    A dim without a value is left out. Raises TeenyError ``unknown-case``.
    """
    dims = {name: dim.value for name, dim in spec.dims.items() if dim.value is not None}
    if index is not None:
        if not 0 <= index < len(spec.cases):
            count = f"cases 0 to {len(spec.cases) - 1}" if spec.cases else "no cases"
            raise TeenyError("unknown-case", f"there is no case {index}: the op has {count}",
                             where=spec.origin.place("cases"))  # fmt: skip
        dims |= spec.cases[index]
    if overrides is not None:
        dims |= {name: value for name, value in overrides.dims.items() if name in dim_names(spec)}
    return dims


def cases_of(spec: OpSpec, overrides: Overrides | None = None) -> list[Dims]:
    """Every case to look at: the op's own dims, then each of ``cases``; equal ones once.

    The op's own are left out when they lack a value and there are cases, which is how an op says that only its
    cases have dims.
    """
    own = case_dims(spec, None, overrides)
    found = [] if spec.cases and dim_names(spec) - own.keys() else [own]
    for index in range(len(spec.cases)):
        dims = case_dims(spec, index, overrides)
        if dims not in found:
            found.append(dims)
    return found


def check_dims(spec: OpSpec, case: Mapping[str, int], overrides: Overrides) -> Dims:
    """The dims to build with: ``case`` over the op's, ``--dim`` over both, each within what its spec allows.

    Raises TeenyError ``bad-dim``.
    """
    dims = case_dims(spec) | dict(case)
    dims |= {name: value for name, value in overrides.dims.items() if name in dim_names(spec)}
    for name, value in dims.items():
        option = f"--dim {name}" if name in overrides.dims else None
        where = Place(key=option) if option else spec.origin.place(f"dims.{name}")
        _check_dim(name, value, spec.dims.get(name, DimSpec()), where)
    return dims


def _check_dim(name: str, value: int, dim: DimSpec, where: Place) -> None:
    if value < 1:
        hint = "a run-time value that may be zero or negative is a scalar"
        raise TeenyError("bad-dim", f"the dim '{name}' is {value}, and must be positive", where=where, hint=hint)
    if value % dim.multiple_of:
        raise TeenyError(
            "bad-dim", f"the dim '{name}' is {value}, and must be a multiple of {dim.multiple_of}", where=where,
            hint=f"the kernel was compiled for such values only, and is wrong for others: take "
            f"{-(-value // dim.multiple_of) * dim.multiple_of}, or compile it again",
        )  # fmt: skip
    if value < dim.min:
        raise TeenyError("bad-dim", f"the dim '{name}' is {value}, and must be at least {dim.min}", where=where)
    if dim.max is not None and value > dim.max:
        raise TeenyError("bad-dim", f"the dim '{name}' is {value}, and must be at most {dim.max}", where=where)
