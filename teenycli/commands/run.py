"""``teeny run``: plan, check, launch, show, compare."""

from __future__ import annotations

from typing import Any

import click

from teenycli.commands.options import amount, checkpoint_options, manifest_options, output_options
from teenycli.errors import TeenyError
from teenycli.exits import Exit
from teenycli.report.console import Console

_FORMS = "n=i32:1024, x=f32[1024], w=f16[64,32]:random, p=null, y=alias:x, s=bytes:@FILE, s={ptr x, i32 4}."


@click.command()
@click.argument("ops", nargs=-1, metavar="[OP]...")
@manifest_options
@click.option("--case", metavar="N|all", help="Run case N of the op, from 0, or all.  [default: the op's own dims]")
@click.option("--backward", is_flag=True, help="Run the op's backward after it, and compare the gradients.")
@click.option("--gradcheck", is_flag=True, help="Hold the gradients against differences of the forward, at the small "
              "dims that the op's gradcheck table gives.")  # fmt: skip
@click.option("--device", default="auto", show_default=True, metavar="auto|cpu|cuda|cuda:N", help="Where to run.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of random inputs.")
@click.option("--input", "inputs", multiple=True, metavar="NAME=INIT", help="Fill a buffer otherwise; with --ptx also "
              "NAME=f32[N]:INIT, a buffer that only a struct points to.")  # fmt: skip
@click.option("--global", "variables", multiple=True, metavar="NAME=[DTYPE:]INIT", help="What a .global or .const "
              "variable of the PTX holds.")  # fmt: skip
@checkpoint_options
@click.option("--save", "saves", multiple=True, metavar="NAME=FILE", help="Save an output: .npy, .npz or .bin.")
@click.option("--expect", "expects", multiple=True, metavar="NAME=@FILE", help="Compare an output with a file.")
@click.option("--rtol", type=float, callback=amount, metavar="X", help="Relative tolerance of comparisons.")
@click.option("--atol", type=float, callback=amount, metavar="X", help="Absolute tolerance of comparisons.")
@click.option("--no-check", is_flag=True, help="Launch in spite of findings, where a launch can be laid out at all.")
@click.option("--timeout", type=float, callback=amount, default=600, show_default=True, metavar="SECONDS",
              help="End a launch that takes longer; 0 for never.")  # fmt: skip
@click.option(
    "--ptx", metavar="FILE", help="Run this PTX (or cubin) with no manifest; the options below describe the launch."
)
@click.option("-a", "--arg", "args", multiple=True, metavar="NAME=SPEC", help=f"The kernel's next argument: {_FORMS}")
@click.option("--entry", metavar="NAME", help="The entry, where the PTX has several.")
@click.option("--grid", metavar="X[,Y[,Z]]", help="CTAs to launch.")
@click.option("--block", metavar="X[,Y[,Z]]", help="Threads of a CTA.  [default: what the PTX says]")
@click.option("--cluster", metavar="X[,Y[,Z]]", help="CTAs of a cluster.")
@click.option("--shared", metavar="BYTES", help="Dynamic shared memory of a CTA.")
@click.option("--hidden", type=click.IntRange(0, 2), metavar="N", help="How many parameters Triton appended.")
@click.option("--cooperative", is_flag=True, help="All CTAs at once, for grid-wide barriers.")
@output_options
@click.pass_context
def run(ctx: click.Context, /, **options: Any) -> Exit:
    """Run an op: compute its launch, check it, launch it, show the launch table, compare with the reference.

    OP is an op of the manifest. Of several, each output is the next op's input; OP may also be a pipeline of the
    manifest, which says more of such a row. Buffers are then OP.NAME in --input, --save and --expect.

    With --ptx FILE there is no manifest, and options describe the launch:

    \b
      teeny run --ptx k.ptx --grid 4 -a 'x=f32[1024]:random' -a 'y=f32[1024]' -a n=i32:1024
    """
    from teenycli.commands.chained import session_of
    from teenycli.commands.request import Options, request_of

    given = Options(**options)
    try:
        return session_of(given, request_of(ctx, given)).run()
    except TeenyError as error:
        if given.as_json:
            from teenycli.report.jsonout import run_document
            from teenycli.report.rows import RunReport

            Console.of_process(given.color).document(run_document(RunReport(error=error.finding)))
        raise
