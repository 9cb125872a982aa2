"""``teeny isa``: the instruction table."""

from __future__ import annotations

import click

from teenycli.commands.options import output_options
from teenycli.errors import TeenyError, did_you_mean
from teenycli.exits import Exit
from teenycli.ptx.isa import Row, forms_of, rows
from teenycli.report.console import Console
from teenycli.report.isa_table import FormRow, isa_document, isa_markdown, isa_page


@click.command()
@click.argument("opcodes", nargs=-1, metavar="[OPCODE]...")
@click.option("--missing", is_flag=True, help="Only what the CPU device lacks.")
@click.option("--tier", type=click.IntRange(1, 3), help="Only one tier: 1 core, 2 warp, atomics and async, 3 tensor.")
@click.option("--markdown", is_flag=True, help="Print the page of the documentation.")
@output_options
def isa(
    opcodes: tuple[str, ...],
    missing: bool,
    tier: int | None,
    markdown: bool,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    color: str,
) -> Exit:
    """List the instructions that teeny knows: modifiers, tier, the PTX version that brought them, and whether the CPU
    device runs them.

    A line for each opcode; with -v, or for the opcodes named, a line for each form.
    """
    console = Console.of_process(color)
    found = [
        row
        for opcode in opcodes or rows()
        for row in _forms(_row(opcode))
        if (tier is None or row.form.tier == tier) and not (missing and row.cpu)
    ]
    if as_json:
        console.document(isa_document(found))
    elif markdown:
        console.out.write(isa_markdown(found))
    elif not quiet:
        console.show(*isa_page(found, forms=verbose or missing or bool(opcodes)))
    return Exit.OK


def _row(opcode: str) -> Row:
    row = rows().get(opcode)
    if row is None:
        raise TeenyError("unknown-opcode", f"there is no instruction '{opcode}'", hint=did_you_mean(opcode, rows()))
    return row


def _forms(row: Row) -> list[FormRow]:
    from teenycli.devices.cpu.registry import supports_form

    return [FormRow(row.opcode, row.doc, form, supports_form(form)) for form in forms_of(row.opcode)]
