"""``teeny check``: does each launch fit its PTX?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from teenycli.commands.options import manifest_options, output_options
from teenycli.errors import Finding, Place, Severity, TeenyError
from teenycli.exits import Exit
from teenycli.report.console import Console
from teenycli.report.rows import CheckRow

if TYPE_CHECKING:
    from teenycli.launch.cases import Overrides
    from teenycli.manifest.load import Manifest


@click.command()
@click.argument("ops", nargs=-1, metavar="[OP]...")
@manifest_options
@output_options
def check(
    ops: tuple[str, ...],
    manifest: str | None,
    dims: tuple[str, ...],
    scalars: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    verbose: bool,
    color: str,
) -> Exit:
    """Check the launches of ops against their PTX: arguments, block, grid, shared memory, initial data.

    Every op and case of the manifest, or the ops named. No device is needed, and nothing is run.
    """
    from teenycli.commands.cases import open_manifest, selected
    from teenycli.launch.cases import check_overrides, parse_overrides

    console = Console.of_process(color)
    try:
        found = open_manifest(manifest)
        names = selected(found, ops)
        overrides = parse_overrides(dims, scalars)
        check_overrides(overrides, [found.ops[name] for name in names if name in found.ops])
    except TeenyError as error:
        if as_json:
            from teenycli.report.jsonout import check_document

            console.document(check_document([], error.finding))
        raise
    rows, code = [], Exit.OK
    for name in names:
        for row, exit_code in _check(found, name, overrides):
            rows.append(row)
            code = max(code, exit_code)
    if not ops:
        rows += [_not_read(name, place) for name, place in found.pipelines.items()]
    if as_json:
        from teenycli.report.jsonout import check_document

        console.document(check_document(rows))
    else:
        from teenycli.report.check_table import check_page

        shown = [row for row in rows if row.findings or row.error or not quiet]
        console.show(*check_page(shown, brief=not (console.out.tty or verbose)))
    return code


def _not_read(pipeline: str, place: Place) -> CheckRow:
    note = Finding("not-checked", "pipelines are neither checked nor run yet", Severity.NOTE, where=place)
    return CheckRow(f"pipeline.{pipeline}", {}, (note,))


def _check(manifest: Manifest, name: str, overrides: Overrides) -> Iterator[tuple[CheckRow, Exit]]:
    """A row for each case of an op, with the exit code that it leads to."""
    from teenycli.commands.cases import judge, module_of
    from teenycli.launch.cases import cases_of

    if name in manifest.gaps:
        yield CheckRow(name, {}, manifest.gaps[name]), Exit.FAILED
        return
    try:
        spec = manifest.op(name)
        module = module_of(spec)
    except TeenyError as error:
        yield CheckRow(name, {}, error=error.finding), error.exit
        return
    for case in cases_of(spec, overrides):
        try:
            judged = judge(spec, case, overrides, module)
        except TeenyError as error:
            yield CheckRow(name, case, error=error.finding), error.exit
            continue
        failed = any(finding.severity is Severity.ERROR for finding in judged.findings)
        yield CheckRow(name, case, judged.findings), Exit.FAILED if failed else Exit.OK
