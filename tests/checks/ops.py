"""Ops made for one rule: of the repository's manifest with something changed, or of a body written for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.commands.teeny import MADE_UP, Teeny, manifest

Op = dict[str, Any]
#: (id, severity) of each finding.
Found = set[tuple[str, str]]


def findings(teeny: Teeny, folder: Path, op: Op, *options: str) -> list[dict[str, Any]]:
    """All that check finds in an op, in all of its cases, what keeps it from looking included; what its launches touch
    aside."""
    rows = teeny("check", "--ignore", MADE_UP, "--json", "-m", manifest(folder, it=op), *options).json["ops"]
    return [f for row in rows for f in (*row["findings"], *([row["error"]] if row["error"] else []))]


def found(teeny: Teeny, folder: Path, op: Op, *options: str) -> Found:
    return {(each["id"], each["severity"]) for each in findings(teeny, folder, op, *options)}


def hints(teeny: Teeny, folder: Path, op: Op, id: str, *options: str) -> set[str | None]:
    return {each["hint"] for each in findings(teeny, folder, op, *options) if each["id"] == id}


def changed(op: Op, index: int, arg: str) -> Op:
    """The op with another argument in a place."""
    args = list(op["args"])
    args[index] = arg
    return {**op, "args": args}


def kernel(folder: Path, params: str, body: str, target: str = "sm_80", directives: str = "") -> str:
    """A file with one entry ``k``; returns its name. Registers: %p, %h (16 bits), %r, %d (64), %f, %g (f64)."""
    registers = (
        ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<19>; .reg .b64 %d<19>; .reg .f32 %f<9>; .reg .f64 %g<9>;"
    )
    (folder / "k.ptx").write_text(
        f".version 8.7\n.target {target}\n.address_size 64\n.visible .entry k({params}) {directives}\n"
        f"{{\n{registers}\n{body}\nret;\n}}\n"
    )
    return "k.ptx"
