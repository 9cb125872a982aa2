"""The course of ``teeny check``: what is looked at, and how it is shown. ``judging`` finds what is shown.

May import the rooms below.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from teenycli.commands.cases import host_of, open_manifest, selected
from teenycli.commands.choice import Choice
from teenycli.commands.judging import Judging, Outcome
from teenycli.errors import TeenyError
from teenycli.exits import Exit
from teenycli.launch.cases import Overrides, check_overrides, parse_overrides
from teenycli.manifest.load import Manifest
from teenycli.report.console import Console
from teenycli.report.rows import CheckRow

if TYPE_CHECKING:
    from teenycli.commands.checkpoint import Checkpoint
    from teenycli.devices.probe import Prober


class CheckOptions(Struct, frozen=True):
    """The options of ``teeny check``, as click gives them."""

    ops: tuple[str, ...]
    manifest: str | None
    dims: tuple[str, ...]
    scalars: tuple[str, ...]
    checkpoint: str | None
    node: str | None
    gpu: str | None
    driver: str | None
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    strict: bool
    form: str
    probe: bool
    seed: int | None
    timeout: float | None
    rust: str | None
    ptx: tuple[str, ...]
    entries: tuple[str, ...]
    as_json: bool
    quiet: bool
    verbose: bool
    color: str


def misuse(given: CheckOptions) -> Iterator[str]:
    """What does not go together among the options."""
    of_manifest = given.dims or given.scalars or given.checkpoint or given.node or given.probe
    if given.rust is None and (given.ptx or given.entries):
        yield f"{'--ptx' if given.ptx else '--entry'} goes with --rust"
    if given.rust is not None and of_manifest:
        yield "--dim, --set, --checkpoint, --node and --probe are for ops of a manifest, not for --rust"
    if given.rust is not None and (given.gpu or given.driver):
        yield "--for and --driver are for ops of a manifest, not for --rust"
    if given.ptx and given.ops:
        yield "--ptx and the names of ops exclude each other"
    if given.as_json and given.form != "text":
        yield "--json and --format github exclude each other"
    if not given.probe and (given.seed is not None or given.timeout is not None):
        yield "--seed and --timeout go with --probe"


def inspect(given: CheckOptions) -> Exit:
    """Look at all that is asked for, and show it. Raises what keeps anything from being looked at."""
    console = Console.of_process(given.color)
    try:
        choice = Choice.of(given.select, given.ignore, given.strict)
        outcomes = _of_rust(given) if given.rust is not None else _of_manifest(given)
    except TeenyError as error:
        _refuse(console, error, given)
        raise
    rows = [choice.of_row(row) for row, _ in outcomes]
    _show(console, rows, given)
    return max([Exit.OK, *(code for _, code in outcomes), *map(choice.exit, rows)])


def _of_rust(given: CheckOptions) -> list[Outcome]:
    from teenycli.commands.rust import rust_rows

    assert given.rust is not None
    return list(rust_rows(given.rust, given.ptx, given.entries, given.manifest, given.ops))


def _of_manifest(given: CheckOptions) -> list[Outcome]:
    """The rows of the ops and pipelines named, or of all."""
    if not given.probe:  # numpy would start threads for products of matrices, of which there are none
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    found = open_manifest(given.manifest)
    pipelines = [name for name in dict.fromkeys(given.ops or found.pipelines) if name in found.pipelines]
    names = [name for name in selected(found, given.ops) if name not in pipelines or name in found.ops]
    overrides = parse_overrides(given.dims, given.scalars)
    _check_overrides(found, names, pipelines, overrides, is_named=bool(given.ops))
    params = _checkpoint(given.checkpoint, given.node, given.ops)
    with _prober(given) as prober:
        judging = Judging(found, overrides, params, host_of(given.gpu, given.driver), prober)
        outcomes = [outcome for name in names for outcome in judging.op(name)]
    return [*outcomes, *(judging.pipeline(name) for name in pipelines)]


def _check_overrides(
    manifest: Manifest, names: Sequence[str], pipelines: Sequence[str], overrides: Overrides, *, is_named: bool
) -> None:
    """Raises TeenyError for a dim or scalar that nothing that is looked at has."""
    steps = [name for pipeline in pipelines for name in _ops_of(manifest, pipeline)]
    # A dim of one step is for the pipelines that are named to know.
    of_steps = {name for name in overrides.dims if "." in name and is_named and pipelines}
    plain = replace(overrides, dims={name: n for name, n in overrides.dims.items() if name not in of_steps})
    check_overrides(plain, [manifest.ops[name] for name in (*names, *steps) if name in manifest.ops])


def _ops_of(manifest: Manifest, pipeline: str) -> tuple[str, ...]:
    spec = manifest.pipelines[pipeline]
    return () if isinstance(spec, TeenyError) else spec.ops


def _checkpoint(file: str | None, node: str | None, ops: tuple[str, ...]) -> Checkpoint | None:
    if file is None and node is None:
        return None
    from teenycli.commands.checkpoint import open_checkpoint

    return open_checkpoint(file, node, ops)


def _prober(given: CheckOptions) -> AbstractContextManager[Prober | None]:
    """The device for ``--probe``. Raises TeenyError ``no-jit``."""
    if not given.probe:
        return nullcontext()
    from teenycli.devices.probe import Prober

    return Prober(given.seed or 0) if given.timeout is None else Prober(given.seed or 0, given.timeout)


# --- to the user -------------------------------------------------------------------------------------------------


def _show(console: Console, rows: Sequence[CheckRow], given: CheckOptions) -> None:
    if given.as_json:
        from teenycli.report.jsonout import check_document

        console.document(check_document(rows))
    elif given.form == "github":
        from teenycli.report.github import workflow_commands

        console.out.write("".join(f"{command}\n" for command in workflow_commands(rows, _workspace())))
    else:
        from teenycli.report.check_table import check_page

        shown = [row for row in rows if row.findings or row.error or not given.quiet]
        console.show(*check_page(shown, brief=not (console.out.tty or given.verbose), ignored=given.verbose))


def _refuse(console: Console, error: TeenyError, given: CheckOptions) -> None:
    """Say to a program that nothing could be checked; standard error says it to all."""
    if given.as_json:
        from teenycli.report.jsonout import check_document

        console.document(check_document([], error.finding))
    elif given.form == "github":
        from teenycli.report.github import annotation

        console.out.write(annotation(error.finding, _workspace()) + "\n")


def _workspace() -> Path:
    """The folder that GitHub's annotations name files from."""
    return Path(os.environ.get("GITHUB_WORKSPACE") or ".")
