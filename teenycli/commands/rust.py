"""``teeny check --rust``: the impls of ``RuntimeOp`` in a Rust file against entries of PTX files or of the manifest.

May import the rooms below and, in this room, ``cases``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from teenycli.arch import parse_target
from teenycli.checks.pairs import Candidate, Side, is_backward, pairs, sides
from teenycli.checks.subject import compiled
from teenycli.checks.visits import Target, visited
from teenycli.commands.cases import module_of, open_manifest, selected
from teenycli.errors import Finding, Place, Severity, TeenyError
from teenycli.exits import Exit
from teenycli.launch.geometry import choose_entry
from teenycli.manifest.load import Manifest
from teenycli.manifest.spec import KernelSpec
from teenycli.ptx import Function, Module, outline, read_source
from teenycli.ptx.metadata import hidden_count, metadata_of
from teenycli.ptx.signature import plain_name
from teenycli.report.rows import CheckRow
from teenycli.rust import RustFile, read_rust


def rust_rows(
    path: str, ptx: Sequence[str], entries: Sequence[str], manifest: str | None, ops: Sequence[str]
) -> Iterator[tuple[CheckRow, Exit]]:
    """A row for each side of each impl in the Rust file ``path``, with the exit code that an error in its place leads
    to. The entries are those of the files ``ptx``, or of the manifest's ops.

    Raises what keeps all of it from being checked: what reading files raises, ``no-runtime-op``, ``rust-entry``.
    """
    rust = read_rust(path)
    if not rust.impls:
        raise _no_impl(rust)
    candidates = _of_files(ptx) if ptx else list(_of_manifest(open_manifest(manifest), ops))
    paired = pairs(sides(rust.impls), candidates, entries, Place(path), alone=bool(ptx or ops))
    for spot in rust.errors:
        hint = "impls around it may have been overlooked"
        message = "this cannot be parsed as Rust"
        finding = Finding("rust-syntax", message, Severity.WARNING, rust.place(spot), hint)
        yield CheckRow(Path(path).name, {}, (finding,)), Exit.OK
    for side, candidate in paired:
        yield _row(rust, side, candidate)


def _row(rust: RustFile, side: Side, candidate: Candidate | None) -> tuple[CheckRow, Exit]:
    if candidate is None:
        message = f"no entry that was given is called like {side.name}: it was not checked"
        where = rust.place(side.impl.side(side.backward)[0].at)
        return CheckRow(side.name, {}, (Finding("rust-undecided", message, Severity.NOTE, where),)), Exit.OK
    try:
        found = [f for packing in side.impl.side(side.backward) for f in visited(rust, packing, candidate.target)]
    except TeenyError as error:
        return CheckRow(side.name, {}, error=error.finding), error.exit
    # A method that hands over to another of the impl has the findings of that one.
    return CheckRow(side.name, {}, tuple(dict.fromkeys(found))), Exit.OK


def _no_impl(rust: RustFile) -> TeenyError:
    if rust.errors:
        message = "this cannot be parsed as Rust, and no impl of RuntimeOp was found"
        return TeenyError("rust-syntax", message, where=rust.place(rust.errors[0]))
    found = f"its impls are {', '.join(rust.others[:8])}" if rust.others else "it has no impl of a trait at all"
    more = f" and {len(rust.others) - 8} more" if len(rust.others) > 8 else ""
    return TeenyError(
        "no-runtime-op", "there is no impl of RuntimeOp", where=Place(rust.name), hint=f"{found}{more}"
    )  # fmt: skip


# --- entries -----------------------------------------------------------------------------------------------------


def _of_files(paths: Sequence[str]) -> list[Candidate]:
    """Every entry of the PTX files. Raises what reading them raises."""
    modules = [outline(read_source(path)) for path in paths]
    symbols = Counter(entry.name for module in modules for entry in module.entries)
    found = []
    for module in modules:
        file = Path(module.source.name)
        for entry in module.entries:
            names = [plain_name(entry.name)]
            if len(module.entries) == 1:  # the symbol may be a bare entry_point
                names.append(file.stem)
            name = entry.name if symbols[entry.name] == 1 else f"{file.name}:{entry.name}"
            backward = any(map(is_backward, names))
            found.append(Candidate(name, tuple(names), backward, _target(module, entry, None)))
    return found


def _of_manifest(manifest: Manifest, ops: Sequence[str]) -> Iterator[Candidate]:
    """The entries of the ops named, and of their backwards; of all ops that can be read, when none is named."""
    for name in selected(manifest, ops):
        try:
            spec = manifest.op(name)
            kernels: list[tuple[KernelSpec, bool]] = [(spec, False)]
            if spec.backward is not None:
                kernels.append((spec.backward, True))
            for kernel, backward in kernels:
                module = module_of(kernel)
                entry = choose_entry(kernel, module)
                label = spec.kernel(backward).name
                names = (name, plain_name(entry.name))
                yield Candidate(label, names, backward, _target(module, entry, kernel.hidden))
        except TeenyError:
            if ops:
                raise


def _target(module: Module, entry: Function, hidden: int | None) -> Target:
    if hidden is None:
        hidden = hidden_count(module, entry, metadata_of(module, entry))
    return Target(compiled(module, entry, parse_target(module.target).sm), min(hidden, len(entry.params)))
