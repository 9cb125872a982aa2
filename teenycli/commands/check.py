"""``teeny check``: does each launch fit its PTX?"""

from __future__ import annotations

from typing import Any

import click

from teenycli.commands.choice import choice_options
from teenycli.commands.options import (
    checkpoint_options,
    host_options,
    manifest_options,
    output_options,
    probe_options,
    rust_options,
)
from teenycli.exits import Exit


@click.command()
@click.argument("ops", nargs=-1, metavar="[OP]...")
@manifest_options
@checkpoint_options
@host_options
@choice_options
@probe_options
@rust_options
@output_options
@click.pass_context
def check(ctx: click.Context, /, **options: Any) -> Exit:
    """Check the launches of ops against their PTX: arguments, block, grid, shared memory, initial data.

    Every op, case and pipeline of the manifest, or the ops and pipelines named. No device is needed, and nothing is
    run but with --probe. 'teeny explain ID' says more of a finding.

    With --rust: what each impl of RuntimeOp in a Rust file visits, against its entry; no manifest is needed.
    """
    from teenycli.commands.inspection import CheckOptions, inspect, misuse

    given = CheckOptions(**options)
    for problem in misuse(given):
        raise click.UsageError(problem, ctx)
    return inspect(given)
