"""``teeny entries``: what is in PTX files."""

from __future__ import annotations

from collections import Counter

import click

from teenycli.arch import parse_target
from teenycli.commands.options import output_options
from teenycli.errors import TeenyError
from teenycli.exits import Exit
from teenycli.ptx import Function, Module, code_of, outline, read_source
from teenycli.ptx.demangle import demangle
from teenycli.ptx.layout import layout
from teenycli.ptx.metadata import hidden_count, metadata_of
from teenycli.ptx.search import shared_memory
from teenycli.report.console import Console
from teenycli.report.rows import Body, EntryRow, FileRow


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--sm", metavar="NN", help="Give the offsets of this architecture.  [default: that of .target]")
@output_options
def entries(files: tuple[str, ...], sm: str | None, as_json: bool, quiet: bool, verbose: bool, color: str) -> Exit:
    """List what is in PTX files: entries with their parameters, launch directives, shared memory and metadata.

    FILE may be - for standard input. With -v the bodies are read too: instructions by tier, registers, and what each
    parameter is used for.
    """
    console = Console.of_process(color)
    target = None if sm is None else parse_target(sm).sm
    rows, code = [], Exit.OK
    for file in files:
        try:
            rows.append(describe(file, target, verbose))
        except TeenyError as error:
            rows.append(FileRow(file, error=error.finding))
            code = max(code, error.exit)
    if as_json:
        from teenycli.report.jsonout import entries_document

        console.document(entries_document(rows))
        return code
    from teenycli.report.entries_table import entries_page
    from teenycli.report.problems import problem

    if not quiet:
        console.show(*entries_page(rows))
    for row in rows:
        if row.error is not None:
            console.tell(*problem(row.error))
    return code


def describe(file: str, sm: int | None, bodies: bool) -> FileRow:
    """The row of one file; ``bodies`` asks for what only parsing them tells. Raises what reading it raises."""
    module = outline(read_source(file, code=True))
    sm = parse_target(module.target).sm if sm is None else sm
    found = module.entries
    readable = demangle(entry.name for entry in found)
    rows = tuple(_entry(module, entry, sm, readable.get(entry.name), bodies) for entry in found)
    return FileRow(module.source.name, module, sm, rows)


def _entry(module: Module, entry: Function, sm: int, demangled: str | None, bodies: bool) -> EntryRow:
    metadata = metadata_of(module, entry)
    static, dynamic = shared_memory(module, entry)
    hidden = hidden_count(module, entry, metadata)
    usages = body = None
    if bodies and module.source.image is None:
        from teenycli.ptx.usage import usage_of

        code = code_of(module, entry)
        usages = usage_of(code)
        body = Body(Counter(op.form.tier for op in code.ops), Counter(f".{r.type}" for r in code.registers))
    return EntryRow(entry, layout(entry, sm), hidden, metadata, static, dynamic, demangled, usages, body)
