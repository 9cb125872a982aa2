"""``teeny check``: does each launch fit its PTX?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from teenycli.commands.choice import Choice, choice_options
from teenycli.commands.options import checkpoint_options, host_options, manifest_options, output_options
from teenycli.errors import TeenyError
from teenycli.exits import Exit
from teenycli.report.console import Console
from teenycli.report.rows import CheckRow

if TYPE_CHECKING:
    from teenycli.checks import Host
    from teenycli.commands.cases import Judged
    from teenycli.commands.checkpoint import Checkpoint
    from teenycli.launch.cases import Overrides
    from teenycli.manifest.load import Manifest
    from teenycli.manifest.spec import OpSpec


@click.command()
@click.argument("ops", nargs=-1, metavar="[OP]...")
@manifest_options
@checkpoint_options
@host_options
@choice_options
@output_options
def check(
    ops: tuple[str, ...],
    manifest: str | None,
    dims: tuple[str, ...],
    scalars: tuple[str, ...],
    checkpoint: str | None,
    node: str | None,
    gpu: str | None,
    driver: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    strict: bool,
    form: str,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    color: str,
) -> Exit:
    """Check the launches of ops against their PTX: arguments, block, grid, shared memory, initial data.

    Every op, case and pipeline of the manifest, or the ops and pipelines named. No device is needed, and nothing is
    run. 'teeny explain ID' says more of a finding.
    """
    from teenycli.commands.cases import host_of, open_manifest, selected
    from teenycli.launch.cases import check_overrides, parse_overrides

    if as_json and form != "text":
        raise click.UsageError("--json and --format github exclude each other", click.get_current_context())
    console = Console.of_process(color)
    try:
        choice = Choice.of(select, ignore, strict)
        found = open_manifest(manifest)
        pipelines = [name for name in dict.fromkeys(ops or found.pipelines) if name in found.pipelines]
        names = [name for name in selected(found, ops) if name not in pipelines or name in found.ops]
        overrides = parse_overrides(dims, scalars)
        looked_at = [*names, *(name for pipeline in pipelines for name in _ops_of(found, pipeline))]
        # A dim of one step is for the pipelines that are named to know.
        steps = {name for name in overrides.dims if "." in name and ops and pipelines}
        plain = replace(overrides, dims={name: n for name, n in overrides.dims.items() if name not in steps})
        check_overrides(plain, [found.ops[name] for name in looked_at if name in found.ops])
        params = _checkpoint(checkpoint, node, ops)
        host = host_of(gpu, driver)
    except TeenyError as error:
        _refuse(console, error, as_json, form)
        raise
    rows, code = [], Exit.OK
    for name in names:
        of_op = []
        for row, exit_code in _check(found, name, overrides, params, host):
            of_op.append(row)
            code = max(code, exit_code)
        as_written = name in found.ops and not (overrides.dims or overrides.scalars)
        rows += _with_idle(found.ops[name], of_op) if as_written else of_op
    for name in pipelines:
        row, exit_code = _check_pipeline(found, name, overrides, host)
        rows.append(row)
        code = max(code, exit_code)
    rows = [choice.of_row(row) for row in rows]
    if as_json or form == "github":
        _write(console, rows, form)
    else:
        from teenycli.report.check_table import check_page

        shown = [row for row in rows if row.findings or row.error or not quiet]
        console.show(*check_page(shown, brief=not (console.out.tty or verbose), ignored=verbose))
    return max([code, *map(choice.exit, rows)])


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


def _check_pipeline(manifest: Manifest, name: str, overrides: Overrides, host: Host) -> tuple[CheckRow, Exit]:
    """A row for a pipeline: what does not fit between its ops, and in each at the dims that it has there."""
    from teenycli.commands.cases import judge_chain, open_chain
    from teenycli.launch.cases import overrides_for

    try:
        chain = open_chain(manifest, [name])
        assert chain is not None
        judged = judge_chain(chain, overrides_for([step.spec for step in chain.pipeline.steps], overrides), host=host)
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


def _check(
    manifest: Manifest, name: str, overrides: Overrides, checkpoint: Checkpoint | None, host: Host
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
    for case in cases:
        yield _judged(name, case, partial(judge, spec, case, overrides, module, checkpoint, host))
    if backward is None:
        return
    for case in cases:
        yield _judged(spec.kernel(True).name, case, partial(judge_backward, spec, case, overrides, backward, host))


def _judged(name: str, case: dict[str, int], judge: Callable[[], Judged]) -> tuple[CheckRow, Exit]:
    try:
        judged = judge()
    except TeenyError as error:
        return CheckRow(name, case, error=error.finding), error.exit
    ignored = tuple((finding, judged.spec.ignore[finding.id]) for finding in judged.ignored)
    return CheckRow(name, case, judged.findings, ignored=ignored), Exit.OK


def _with_idle(spec: OpSpec, rows: list[CheckRow]) -> list[CheckRow]:
    """The rows of an op, with what there is to say of its ``ignore``; the same rows when not all was looked at."""
    from teenycli.checks import LAYOUT_IDS
    from teenycli.checks.ignores import idle_ignores

    if any(row.error is not None or any(finding.id in LAYOUT_IDS for finding in row.findings) for row in rows):
        return rows
    idle = tuple(idle_ignores(spec, {finding.id for row in rows for finding, _ in row.ignored}))
    return [replace(row, findings=row.findings + idle) if row.op == spec.name else row for row in rows]
