"""``teeny init``: a first manifest for a kernel."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from teenycli.commands.options import color_option
from teenycli.errors import Place, TeenyError
from teenycli.exits import Exit
from teenycli.report.console import Console

if TYPE_CHECKING:
    from teenycli.manifest.write import OpDraft
    from teenycli.ptx import Function, Module


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--entry", "entries", multiple=True, metavar="NAME", help="Only this entry.  [default: all of the file]")
@click.option("--name", metavar="OP", help="What to call the op.  [default: as the entry]")
@click.option("-o", "--output", metavar="FILE", help="Append to this manifest, or make it.  [default: print]")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing of what was written.")
@color_option
def init(file: str, entries: tuple[str, ...], name: str | None, output: str | None, quiet: bool, color: str) -> Exit:
    """Write a manifest table for each entry of a PTX file, to be filled in.

    FILE is a .ptx, a Triton cache folder with one in it, or - for standard input. Arguments, their kinds, directions
    and element types come from the PTX, from C++ names and from what Triton left beside it; what nothing tells is
    "TODO", with the reason in a comment, and 'teeny check' lists what is left. An op that is in the manifest already
    is never touched.
    """
    from teenycli.manifest.write import append_ops, op_text

    console = Console.of_process(color)
    drafts, code = _drafts(file, entries, name, output, console)
    if output is not None and drafts:
        append_ops(Path(output), drafts)
        if not quiet:
            ops = ", ".join(draft.name for draft in drafts)
            manifest = "" if Path(output).name == "ops.toml" else f" -m {output}"
            console.tell(f"{output}: {ops}; 'teeny check{manifest}' lists what is left to say")
    elif drafts:
        console.out.write("\n".join(op_text(draft) for draft in drafts))
    return code


def _drafts(
    file: str, names: tuple[str, ...], name: str | None, output: str | None, console: Console
) -> tuple[list[OpDraft], Exit]:
    """A draft of each entry asked for; an entry that cannot be read is told, and the others go on."""
    from teenycli.launch.draft import draft_op
    from teenycli.manifest.load import MANIFEST, ptx_in
    from teenycli.ptx import outline, read_source
    from teenycli.report.problems import problem

    path = file if file == "-" else str(ptx_in(Path(file), Place(file)))
    module = outline(read_source(path))
    entries = _chosen(module, names)
    if name is not None and len(entries) > 1:
        raise TeenyError(
            "bad-option", f"one name for {len(entries)} entries", where=Place(key=f"--name {name}"),
            hint="choose one with --entry",
        )  # fmt: skip
    where = _from_manifest(file, Path(output or MANIFEST))
    drafts: list[OpDraft] = []
    code = Exit.OK
    for entry in entries:
        op = name or _op_name(entry.name, {draft.name for draft in drafts})
        try:
            drafts.append(draft_op(module, entry, op, where))
        except TeenyError as error:
            console.tell(*problem(error.finding))
            code = max(code, error.exit)
    return drafts, code


def _chosen(module: Module, names: tuple[str, ...]) -> list[Function]:
    from teenycli.launch.geometry import choose_entry
    from teenycli.manifest.spec import OpSpec, Origin

    if names:
        origin = Origin(options={"entry": "--entry"})
        return [choose_entry(OpSpec(name=n, origin=origin, ptx="", entry=n, args=(), grid=()), module) for n in names]
    if not module.entries:
        choose_entry(OpSpec(name="", ptx="", args=(), grid=()), module)
    return list(module.entries)


def _from_manifest(file: str, manifest: Path) -> str:
    """The path of ``file`` as a manifest there writes it."""
    from teenycli.manifest.gaps import OPEN

    if file == "-":
        return OPEN
    try:
        near = Path(os.path.relpath(file, manifest.parent))
    except ValueError:  # another drive
        near = Path(file).resolve()
    far = near.parts[:3] == ("..",) * 3
    return (Path(file).resolve() if far else near).as_posix()


def _op_name(entry: str, taken: set[str]) -> str:
    """A bare key for the entry: its name in the source, with a number when that is taken."""
    from teenycli.ptx.signature import plain_name

    name = re.sub(r"[^A-Za-z0-9_-]+", "_", plain_name(entry)).strip("_")[:64] or "kernel"
    return next(n for n in (name, *(f"{name}_{k}" for k in range(2, len(taken) + 3))) if n not in taken)
