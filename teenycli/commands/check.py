"""``teeny check``: does each launch fit its PTX?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from teenycli.commands.choice import Choice, choice_options
from teenycli.commands.options import (
    checkpoint_options,
    manifest_options,
    output_options,
    probe_options,
    rust_options,
)
from teenycli.errors import TeenyError
from teenycli.exits import Exit
from teenycli.report.console import Console
from teenycli.report.rows import CheckRow

if TYPE_CHECKING:
    from teenycli.commands.cases import Judged
    from teenycli.commands.checkpoint import Checkpoint
    from teenycli.devices.probe import Prober
    from teenycli.launch.cases import Overrides
    from teenycli.manifest.load import Manifest
    from teenycli.manifest.spec import OpSpec


@click.command()
@click.argument("ops", nargs=-1, metavar="[OP]...")
@manifest_options
@checkpoint_options
@choice_options
@probe_options
@rust_options
@output_options
def check(
    ops: tuple[str, ...],
    manifest: str | None,
    dims: tuple[str, ...],
    scalars: tuple[str, ...],
    checkpoint: str | None,
    node: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    strict: bool,
    form: str,
    probe: bool,
    seed: int | None,
    timeout: float | None,
    rust: str | None,
    ptx: tuple[str, ...],
    entries: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    verbose: bool,
    color: str,
) -> Exit:
    """Check the launches of ops against their PTX: arguments, block, grid, shared memory, initial data.

    Every op, case and pipeline of the manifest, or the ops and pipelines named. No device is needed, and nothing is
    run but with --probe. 'teeny explain ID' says more of a finding.

    With --rust: what each impl of RuntimeOp in a Rust file visits, against its entry; no manifest is needed.
    """
    from teenycli.commands.cases import open_manifest, selected
    from teenycli.launch.cases import parse_overrides

    of_manifest = bool(dims or scalars or checkpoint or node or probe)
    for problem in _misuse(ops, rust, bool(ptx), bool(entries), of_manifest):
        raise click.UsageError(problem, click.get_current_context())
    if as_json and form != "text":
        raise click.UsageError("--json and --format github exclude each other", click.get_current_context())
    if not probe and (seed is not None or timeout is not None):
        raise click.UsageError("--seed and --timeout go with --probe", click.get_current_context())
    console = Console.of_process(color)
    held = ExitStack()
    show = partial(_show, console, form="json" if as_json else form, quiet=quiet, verbose=verbose)
    try:
        choice = Choice.of(select, ignore, strict)
        if rust is not None:
            from teenycli.commands.rust import rust_rows

            judged = list(rust_rows(rust, ptx, entries, manifest, ops))
            return show([row for row, _ in judged], choice, max(code for _, code in judged))
        found = open_manifest(manifest)
        pipelines = [name for name in dict.fromkeys(ops or found.pipelines) if name in found.pipelines]
        names = [name for name in selected(found, ops) if name not in pipelines or name in found.ops]
        overrides = parse_overrides(dims, scalars)
        _check_overrides(found, names, pipelines, overrides, is_named=bool(ops))
        params = _checkpoint(checkpoint, node, ops)
        prober = held.enter_context(_prober(seed or 0, timeout)) if probe else None
    except TeenyError as error:
        _refuse(console, error, as_json, form)
        raise
    rows, code = [], Exit.OK
    with held:
        for name in names:
            of_op, exit_code = _check_op(found, name, overrides, params, prober)
            rows += of_op
            code = max(code, exit_code)
    for name in pipelines:
        row, exit_code = _check_pipeline(found, name, overrides)
        rows.append(row)
        code = max(code, exit_code)
    return show(rows, choice, code)


def _misuse(ops: tuple[str, ...], rust: str | None, ptx: bool, entry: bool, of_manifest: bool) -> Iterator[str]:
    """What does not go together among the options, ``of_manifest`` being those that take an op of a manifest."""
    if rust is None and (ptx or entry):
        yield f"{'--ptx' if ptx else '--entry'} goes with --rust"
    if rust is not None and of_manifest:
        yield "--dim, --set, --checkpoint, --node and --probe are for ops of a manifest, not for --rust"
    if ptx and ops:
        yield "--ptx and the names of ops exclude each other"


def _show(
    console: Console, rows: list[CheckRow], choice: Choice, code: Exit, *, form: str, quiet: bool, verbose: bool
) -> Exit:
    """Show what was found as ``form`` (text, github, json) has it; the exit code that it leads to."""
    rows = [choice.of_row(row) for row in rows]
    if form != "text":
        _write(console, rows, form)
    else:
        _show(console, [row for row in rows if row.findings or row.error or not quiet], verbose)
    return max([code, *map(choice.exit, rows)])


def _check_overrides(
    manifest: Manifest, names: list[str], pipelines: list[str], overrides: Overrides, *, is_named: bool
) -> None:
    """Raises TeenyError for a dim or scalar that nothing that is looked at has."""
    from teenycli.launch.cases import check_overrides

    looked_at = [*names, *(name for pipeline in pipelines for name in _ops_of(manifest, pipeline))]
    # A dim of one step is for the pipelines that are named to know.
    steps = {name for name in overrides.dims if "." in name and is_named and pipelines}
    plain = replace(overrides, dims={name: n for name, n in overrides.dims.items() if name not in steps})
    check_overrides(plain, [manifest.ops[name] for name in looked_at if name in manifest.ops])


def _show(console: Console, rows: list[CheckRow], verbose: bool) -> None:
    """What a person reads."""
    from teenycli.report.check_table import check_page

    console.show(*check_page(rows, brief=not (console.out.tty or verbose), ignored=verbose))


def _prober(seed: int, timeout: float | None) -> Prober:
    """The device for ``--probe``. Raises TeenyError ``no-jit``."""
    from teenycli.devices.probe import Prober

    return Prober(seed) if timeout is None else Prober(seed, timeout)


def _refuse(console: Console, error: TeenyError, as_json: bool, form: str) -> None:
    """Say to a program that nothing could be checked; standard error says it to all."""
    if as_json:
        from teenycli.report.jsonout import check_document

        console.document(check_document([], error.finding))
    elif form == "github":
        from teenycli.report.github import annotation

        console.out.write(annotation(error.finding, _workspace()) + "\n")


def _write(console: Console, rows: list[CheckRow], form: str) -> None:
    """What a program reads: JSON, or GitHub's workflow commands."""
    if form == "github":
        from teenycli.report.github import workflow_commands

        console.out.write("".join(f"{command}\n" for command in workflow_commands(rows, _workspace())))
    else:
        from teenycli.report.jsonout import check_document

        console.document(check_document(rows))


def _workspace() -> Path:
    """The folder that GitHub's annotations name files from."""
    return Path(os.environ.get("GITHUB_WORKSPACE") or ".")


def _ops_of(manifest: Manifest, pipeline: str) -> tuple[str, ...]:
    spec = manifest.pipelines[pipeline]
    return () if isinstance(spec, TeenyError) else spec.ops


def _check_pipeline(manifest: Manifest, name: str, overrides: Overrides) -> tuple[CheckRow, Exit]:
    """A row for a pipeline: what does not fit between its ops, and in each at the dims that it has there."""
    from teenycli.commands.cases import judge_chain, open_chain, with_memory
    from teenycli.launch.cases import overrides_for

    try:
        chain = open_chain(manifest, [name])
        assert chain is not None
        chained = judge_chain(chain, overrides_for([step.spec for step in chain.pipeline.steps], overrides))
        judged = [with_memory(one) for one in chained]
    except TeenyError as error:
        return CheckRow(f"pipeline.{name}", {}, error=error.finding), error.exit
    findings = tuple(dict.fromkeys(finding for one in judged for finding in one.findings))
    ignored = tuple((finding, one.spec.ignore[finding.id]) for one in judged for finding in one.ignored)
    return CheckRow(f"pipeline.{name}", {}, findings, ignored=ignored), Exit.OK


def _checkpoint(file: str | None, node: str | None, ops: tuple[str, ...]) -> Checkpoint | None:
    if file is None and node is None:
        return None  # and numpy stays out
    from teenycli.commands.checkpoint import open_checkpoint

    return open_checkpoint(file, node, ops)


def _check_op(
    manifest: Manifest, name: str, overrides: Overrides, checkpoint: Checkpoint | None, prober: Prober | None
) -> tuple[list[CheckRow], Exit]:
    """The rows of an op, with the exit code that errors in their place lead to."""
    rows, code = [], Exit.OK
    for row, exit_code in _check(manifest, name, overrides, checkpoint):
        rows.append(row)
        code = max(code, exit_code)
    if name not in manifest.ops:
        return rows, code
    if prober is not None:
        from teenycli.commands.probing import with_probes

        rows = with_probes(prober, manifest.ops[name], overrides, rows)
    as_written = not (overrides.dims or overrides.scalars)
    probed = prober is not None and not any(finding.id == "not-probed" for row in rows for finding in row.findings)
    return (_with_idle(manifest.ops[name], rows, probed=probed) if as_written else rows), code


def _check(
    manifest: Manifest, name: str, overrides: Overrides, checkpoint: Checkpoint | None
) -> Iterator[tuple[CheckRow, Exit]]:
    """A row for each case of an op, and of its backward, with the exit code that an error in its place leads to."""
    from teenycli.commands.cases import judge, judge_backward, module_of
    from teenycli.launch.cases import cases_of

    if name in manifest.gaps:
        yield CheckRow(name, {}, manifest.gaps[name]), Exit.FAILED
        return
    try:
        spec = manifest.op(name)
        cases, module = cases_of(spec, overrides), module_of(spec)
        backward = None if spec.backward is None else module_of(spec.backward)
    except TeenyError as error:
        yield CheckRow(name, {}, error=error.finding), error.exit
        return
    yield from _rows(name, cases, [partial(judge, spec, case, overrides, module, checkpoint) for case in cases])
    if backward is not None:
        judges = [partial(judge_backward, spec, case, overrides, backward) for case in cases]
        yield from _rows(spec.kernel(True).name, cases, judges)


def _rows(
    name: str, cases: Sequence[dict[str, int]], judges: Sequence[Callable[[], Judged]]
) -> Iterator[tuple[CheckRow, Exit]]:
    """The rows of an op at its cases: what fits each launch, and then what the launches touch."""
    from teenycli.checks import largest_inputs
    from teenycli.commands.cases import with_memory

    outcomes = [_attempt(judge) for judge in judges]
    largest = iter(largest_inputs([one.plan for one in outcomes if not isinstance(one, TeenyError)]))
    for case, outcome in zip(cases, outcomes, strict=True):
        if not isinstance(outcome, TeenyError):
            outcome = _attempt(partial(with_memory, outcome, next(largest)))
        if isinstance(outcome, TeenyError):
            yield CheckRow(name, case, error=outcome.finding), outcome.exit
            continue
        ignored = tuple((finding, outcome.spec.ignore[finding.id]) for finding in outcome.ignored)
        yield CheckRow(name, case, outcome.findings, ignored=ignored), Exit.OK


def _attempt(judge: Callable[[], Judged]) -> Judged | TeenyError:
    try:
        return judge()
    except TeenyError as error:
        return error


def _with_idle(spec: OpSpec, rows: list[CheckRow], *, probed: bool) -> list[CheckRow]:
    """The rows of an op, with what there is to say of its ``ignore``; the same rows when not all was looked at."""
    from teenycli.checks import LAYOUT_IDS
    from teenycli.checks.ignores import idle_ignores

    if any(row.error is not None or any(finding.id in LAYOUT_IDS for finding in row.findings) for row in rows):
        return rows
    idle = tuple(idle_ignores(spec, {finding.id for row in rows for finding, _ in row.ignored}, probed=probed))
    return [replace(row, findings=row.findings + idle) if row.op == spec.name else row for row in rows]
