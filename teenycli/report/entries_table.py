"""What is in a file of PTX, entry by entry.

May import ``rows``, ``layout``, ``numbers``, ``text`` and ``uses`` of this room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from teenycli.arch import parse_target
from teenycli.report.layout import Column, Fields, Item, Table
from teenycli.report.numbers import count, size, triple
from teenycli.report.rows import EntryRow, FileRow
from teenycli.report.text import Line, Span, line, visible
from teenycli.report.uses import part_words, parts_of, usage_words

_COLUMNS = (
    Column("#", right=True),
    Column("param"),
    Column("type"),
    Column("size", right=True),
    Column("align", right=True),
    Column("offset", right=True),
    Column("about"),
)


#: Characters of a parameter's name up to which it is shown as it is.
_LONGEST = 48


def entries_page(rows: Iterable[FileRow]) -> Iterator[Item]:
    """A block for each file that could be read; files that could not are the caller's to report."""
    first = True
    for row in rows:
        if row.module is None:
            continue
        if not first:
            yield ""
        first = False
        yield _file_line(row)
        for entry in row.entries:
            yield ""
            yield from _entry(entry)


def _file_line(row: FileRow) -> Line:
    module = row.module
    assert module is not None
    version = ".".join(map(str, module.version))
    what = [f"PTX {version}", module.target] if module.source.image is None else [str(parse_target(module.target))]
    about = [*what, f"{module.address_size}-bit", count(len(row.entries), "entry", "entries")]
    if row.sm is not None and row.entries:
        about.append(f"offsets as on sm_{row.sm}")
    return line(Span(visible(row.file), "title"), Span(f"  {', '.join(about)}", "dim"))


def _entry(row: EntryRow) -> Iterator[Item]:
    yield line(Span(visible(row.entry.name), "name"), Span(f"  line {row.entry.at.line}", "dim"))
    if row.demangled:
        yield line("  ", visible(row.demangled))
    if row.slots:
        yield Table(
            _COLUMNS, [each for index in range(len(row.slots)) for each in (_param(row, index), *_parts(row, index))]
        )
    yield Fields([*_launch_rules(row), *_memory(row), *_notes(row)])


def _param(row: EntryRow, index: int) -> list[str | Line]:
    slot = row.slots[index]
    said: list[str] = []
    if slot.param.pointer is not None:
        space = slot.param.pointer.space
        said.append(f"ptr to {space}" if space else "ptr")
        said.append(f"align {slot.param.pointer.align}")
    if row.usages is not None:
        said.extend(usage_words(row.usages[index], slot.param.pointer is not None, slot.size))
    hidden = line(Span("hidden", "warn"), ", " if said else "") if row.is_hidden(index) else ()
    about = line(hidden, ", ".join(said))
    place = [str(slot.index), visible(_own_name(slot.param.name, row.entry.name)), slot.param.declared_type]
    return [*place, str(slot.size), str(slot.align), str(slot.offset), about]


def _own_name(name: str, entry: str) -> str:
    """A parameter's name without the entry's, with which compilers begin it, where that makes a table of nothing else:
    mangled names have hundreds of characters."""
    rest = name.removeprefix(entry)
    return f"…{rest}" if len(name) > _LONGEST and rest and rest != name else name


def _parts(row: EntryRow, index: int) -> Iterator[list[str | Line]]:
    """A row for each part of a struct."""
    slot = row.slots[index]
    for part in parts_of(row.usages[index], slot.size) if row.usages is not None else ():
        kinds = " ".join(dict.fromkeys(load.type for load in part.loads))
        words = part_words(part)
        about = ", ".join(words[1:] if words[0] == f"read as {kinds}" and len(words) > 1 else words)
        yield ["", f"  +{part.offset}", kinds, str(part.size), "", str(slot.offset + part.offset), about]


def _launch_rules(row: EntryRow) -> Iterator[tuple[str, str]]:
    """What the directives ask of a launch."""
    said = row.entry.directives
    if said.reqntid:
        yield "block", f"exactly {triple(said.reqntid)} threads (.reqntid)"
    if said.maxntid:
        yield "block", f"at most {triple(said.maxntid)} threads (.maxntid)"
    cluster = []
    if said.reqnctapercluster:
        cluster.append(f"exactly {triple(said.reqnctapercluster)} CTAs (.reqnctapercluster)")
    if said.maxclusterrank:
        cluster.append(f"at most {count(said.maxclusterrank, 'CTA')} (.maxclusterrank)")
    if said.explicitcluster:
        cluster.append("the launch must say (.explicitcluster)")
    if said.blocksareclusters:
        cluster.append("the grid counts clusters (.blocksareclusters)")
    if cluster:
        yield "cluster", "; ".join(cluster)
    if said.minnctapersm:
        yield "occupancy", f"at least {count(said.minnctapersm, 'CTA')} on a multiprocessor (.minnctapersm)"
    if said.maxnreg:
        yield "limit", f"at most {said.maxnreg} registers a thread (.maxnreg)"


def _memory(row: EntryRow) -> Iterator[tuple[str, str]]:
    if row.slots:
        last = row.slots[-1]
        hidden = f", {row.hidden} of them hidden (added by the compiler)" if row.hidden else ""
        yield "params", f"{len(row.slots)} in {count(last.offset + last.size, 'byte')}{hidden}"
    else:
        yield "params", "none"
    said = [f"{size(row.shared_static)} static"] if row.shared_static else []
    if row.shared_dynamic:
        known = row.metadata.shared
        said.append(
            "dynamic, as much as the launch says" if known is None else f"{size(known)} dynamic by the metadata"
        )
    if said:
        yield "shared", ", ".join(said)


def _notes(row: EntryRow) -> Iterator[tuple[str, str]]:
    known = row.metadata.known
    if known:
        source = f"  (from {row.metadata.source})" if row.metadata.source else ""
        yield "metadata", visible(", ".join(f"{key}={value}" for key, value in known.items()) + source)
    if row.body is not None:
        tiers = ", ".join(f"{number:,} of tier {tier}" for tier, number in sorted(row.body.tiers.items()))
        yield "body", count(sum(row.body.tiers.values()), "instruction") + (f": {tiers}" if tiers else "")
        registers = ", ".join(f"{number:,} {kind}" for kind, number in row.body.registers.items())
        yield "registers", f"{registers or 'none'} (virtual, as declared)"
