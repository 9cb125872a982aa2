"""The instruction table, as text, JSON, and the page of the documentation.

May import ``ptx.isa`` and, in this room, ``layout``, ``numbers`` and ``text``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct

from teenycli.ptx.isa import Form
from teenycli.report.layout import Column, Item, Table
from teenycli.report.numbers import count
from teenycli.report.text import Span, line


class FormRow(Struct, frozen=True):
    """A form, the section of the PTX ISA it is from, and whether the CPU device runs it."""

    opcode: str
    doc: str
    form: Form
    cpu: bool


_OPCODES = (
    Column("opcode"),
    Column("tier"),
    Column("forms", right=True),
    Column("PTX"),
    Column("cpu"),
    Column("section"),
)
_FORMS = (Column("form"), Column("tier"), Column("PTX"), Column("sm"), Column("cpu"))


def isa_page(rows: Sequence[FormRow], *, forms: bool) -> Iterator[Item]:
    """A line for each opcode, or for each form; and what it comes to."""
    if forms:
        yield Table(_FORMS, [_form(row) for row in rows], indent=0, heads=1)
    else:
        yield Table(_OPCODES, [_opcode(group) for group in _grouped(rows)], indent=0, heads=1)
    there = sum(row.cpu for row in rows)
    yield f"{count(len(_grouped(rows)), 'opcode')}, {count(len(rows), 'form')}; the CPU device runs {there:,} of them"


def _grouped(rows: Sequence[FormRow]) -> list[list[FormRow]]:
    return [list(group) for _, group in groupby(rows, key=lambda row: row.opcode)]


def _opcode(rows: Sequence[FormRow]) -> list[Any]:
    first = rows[0]
    tiers = "-".join(str(tier) for tier in sorted({row.form.tier for row in rows}))
    return [
        Span(first.opcode, "name"), tiers, str(len(rows)), _since(min(row.form.ptx for row in rows)),
        _answer(sum(row.cpu for row in rows), len(rows)), Span(first.doc, "dim"),
    ]  # fmt: skip


def _form(row: FormRow) -> list[Any]:
    form = row.form
    sm = f"sm_{form.sm}{form.suffix}" if form.sm else ""
    slots = [f"{slot.name} = {' '.join(slot.choices)}" for slot in form.modifiers if slot.choices != (slot.name,)]
    text = line(Span(form.text, "name"), Span("  " + "; ".join(slots) if slots else "", "dim"))
    return [text, str(form.tier), _since(form.ptx), sm, _answer(int(row.cpu), 1)]


def _since(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _answer(there: int, of: int) -> Span:
    return Span("yes", "good") if there == of else Span("no", "warn") if not there else Span(f"{there} of {of}", "warn")


def isa_document(rows: Sequence[FormRow]) -> list[dict[str, Any]]:
    """The document of ``teeny isa --json``: one object a form."""
    return [
        {
            "opcode": row.opcode,
            "form": row.form.text,
            "modifiers": {slot.name: list(slot.choices) for slot in row.form.modifiers},
            "tier": row.form.tier,
            "ptx": _since(row.form.ptx),
            "sm": row.form.sm,
            "section": row.doc,
            "cpu": row.cpu,
        }
        for row in rows
    ]


def isa_markdown(rows: Sequence[FormRow]) -> str:
    """The page: a line for each opcode."""
    out = [
        "# Instructions\n",
        "Written by `teeny isa --markdown` (`make docs`). Tier 1 is the core, 2 warp operations, atomics and",
        "asynchronous copies, 3 tensor cores, TMA, texture and surface. `teeny isa OPCODE` shows the forms of one,",
        "`teeny isa --missing` what the CPU device lacks.\n",
        "| opcode | tier | forms | PTX | CPU device | section of the PTX ISA |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for group in _grouped(rows):
        opcode, tiers, forms, since, answer, section = (
            cell.text if isinstance(cell, Span) else cell for cell in _opcode(group)
        )
        out.append(f"| `{opcode}` | {tiers} | {forms} | {since} | {answer} | {section} |")
    return "\n".join(out) + "\n"
