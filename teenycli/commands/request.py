"""The command line of ``teeny run`` as a request: one op or several in a row, from a manifest, or one
described by options, and how to run it.

May import click and the rooms below.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import replace

from teenycli.commands.cases import Chain, open_chain, open_manifest
from teenycli.launch.adhoc import BUFFER, AdhocOptions, adhoc_spec
from teenycli.launch.cases import Dims, Overrides, case_dims, cases_of, check_overrides, dim_names, parse_overrides
from teenycli.manifest.spec import OpSpec


class Options(Struct, frozen=True):
    """The options as click gives them, by their parameter names."""

    ops: tuple[str, ...]
    manifest: str | None
    dims: tuple[str, ...]
    scalars: tuple[str, ...]
    case: str | None
    backward: bool
    gradcheck: bool
    device: str
    seed: int
    inputs: tuple[str, ...]
    variables: tuple[str, ...]
    checkpoint: str | None
    node: str | None
    saves: tuple[str, ...]
    expects: tuple[str, ...]
    rtol: float | None
    atol: float | None
    no_check: bool
    timeout: float
    ptx: str | None
    args: tuple[str, ...]
    entry: str | None
    grid: str | None
    block: str | None
    cluster: str | None
    shared: str | None
    hidden: int | None
    cooperative: bool
    as_json: bool
    quiet: bool
    verbose: bool
    color: str


#: Options that describe a launch, and so go with --ptx only; and those that go with a manifest only.
_ADHOC = ("args", "entry", "grid", "block", "cluster", "shared", "hidden", "cooperative")
_MANIFEST = ("manifest", "case", "dims", "scalars", "checkpoint", "node", "backward", "gradcheck")

#: And those that go with one op of it.
_ONE_OP = ("case", "checkpoint", "node", "backward", "gradcheck")


class Request(Struct, frozen=True):
    """What to run. ``inputs``, ``saves`` and ``expects`` are texts by buffer or output name, ``variables`` by that of a
    variable of the PTX; ``adhoc`` is --ptx.

    Of several ops in a row (``chain``), ``spec`` is the first.
    """

    spec: OpSpec
    cases: Sequence[Dims]
    overrides: Overrides
    adhoc: bool
    inputs: dict[str, str]
    saves: dict[str, str]
    expects: dict[str, str]
    variables: dict[str, str]
    chain: Chain | None = None


def request_of(ctx: click.Context, options: Options) -> Request:
    """Raises click.UsageError for options that do not go together, and what reading the manifest raises."""
    adhoc = options.ptx is not None
    wrong = [name for name in (_MANIFEST if adhoc else _ADHOC) if getattr(options, name) not in (None, (), False)]
    if wrong:
        names = ", ".join(_spelled(ctx, name) for name in wrong)
        verb, how = "goes" if len(wrong) == 1 else "go", "without" if adhoc else "with"
        raise click.UsageError(f"{names} {verb} {how} --ptx", ctx)
    if bool(options.ops) == adhoc:
        both = ", not both" if adhoc else ""
        raise click.UsageError(f"name an op of the manifest, or give --ptx FILE{both}", ctx)
    inputs = _pairs("--input", options.inputs)
    if adhoc:
        declared = {name: text for name, text in inputs.items() if BUFFER.fullmatch(text)}
        inputs = {name: text for name, text in inputs.items() if name not in declared}
        chain = None
        spec, cases, overrides = _described(options, [f"{name}={text}" for name, text in declared.items()])
    else:
        chain, spec, cases, overrides = _from_manifest(ctx, options)
    return Request(
        spec,
        cases,
        overrides,
        adhoc,
        {name: _from_here(text) for name, text in inputs.items()},
        _pairs("--save", options.saves),
        _pairs("--expect", options.expects),
        _pairs("--global", options.variables),
        chain,
    )


def _from_here(init: str) -> str:
    """An initialiser of the command line, whose file lies where the user is and not beside the manifest."""
    if "." not in init:
        return init  # and numpy stays out
    from teenycli.tensors.files import parse_file

    file = parse_file(init.strip())
    return init if file is None else f"@{replace(file, path=str(Path.cwd() / file.path))}"


def _spelled(ctx: click.Context, name: str) -> str:
    return next(param.opts[-1] for param in ctx.command.params if param.name == name)


def _described(options: Options, buffers: list[str]) -> tuple[OpSpec, list[Dims], Overrides]:
    assert options.ptx is not None
    described = AdhocOptions(
        options.ptx,
        options.args,
        options.entry,
        options.grid,
        options.block,
        options.cluster,
        options.shared,
        options.hidden,
        options.cooperative,
        buffers,
    )
    return adhoc_spec(described), [{}], Overrides()


def _from_manifest(ctx: click.Context, options: Options) -> tuple[Chain | None, OpSpec, list[Dims], Overrides]:
    manifest = open_manifest(options.manifest)
    overrides = parse_overrides(options.dims, options.scalars)
    chain = open_chain(manifest, options.ops)
    if chain is not None:
        wrong = [name for name in _ONE_OP if getattr(options, name) not in (None, False)]
        if wrong:
            names = ", ".join(_spelled(ctx, name) for name in wrong)
            raise click.UsageError(f"{names} {'goes' if len(wrong) == 1 else 'go'} with one op", ctx)
        return chain, chain.pipeline.steps[0].spec, [{}], overrides
    spec = manifest.op(options.ops[0])
    check_overrides(overrides, [spec])
    return None, spec, _cases(options, spec, overrides), overrides


def _cases(options: Options, spec: OpSpec, overrides: Overrides) -> list[Dims]:
    if options.gradcheck:
        if options.case is not None:
            raise click.UsageError("--gradcheck has dims of its own, in the op's gradcheck table, and takes no --case")
        own = case_dims(spec) | dict(spec.gradcheck_dims)
        return [own | {name: each for name, each in overrides.dims.items() if name in dim_names(spec)}]
    if options.case == "all":
        return cases_of(spec, overrides)
    if options.case is not None and not (options.case.isascii() and options.case.isdigit() and len(options.case) < 10):
        raise click.BadParameter(f"'{options.case}' is neither a number nor 'all'", param_hint="--case")
    return [case_dims(spec, None if options.case is None else int(options.case), overrides)]


def _pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise click.BadParameter(f"'{text}' is not NAME=VALUE", param_hint=option)
        if name.strip() in found:
            raise click.BadParameter(f"'{name.strip()}' is given twice", param_hint=option)
        found[name.strip()] = value.strip()
    return found
