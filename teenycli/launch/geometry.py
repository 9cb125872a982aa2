"""Which entry is launched, and over what: block, grid, cluster, dynamic shared memory.

May import ``errors``, ``manifest``, ``ptx`` and, in this room, ``namespace``.
"""

from __future__ import annotations

from collections.abc import Sequence

from teenycli.errors import Place, TeenyError, did_you_mean
from teenycli.expressions import Expression
from teenycli.launch.namespace import Namespace
from teenycli.manifest.spec import KernelSpec
from teenycli.ptx.metadata import Metadata, is_triton
from teenycli.ptx.model import Function, Module, Triple
from teenycli.ptx.search import shared_dynamic


def choose_entry(spec: KernelSpec, module: Module) -> Function:
    """The op's entry: the one that ``entry`` names, else the PTX's only one, else the one of the op's name, or
    ``{name}_entry_point``; of a backward ``{name}_backward`` is the name.

    Raises TeenyError ``no-entry`` when the PTX defines none, ``unknown-entry``, ``ambiguous-entry``.
    """
    entries = {entry.name: entry for entry in module.entries}
    if not entries:
        hint = "an entry needs a body to be launched" if any(f.is_entry for f in module.functions) else None
        where = Place(module.source.name)
        raise TeenyError("no-entry", "the PTX defines no entry", where=where, hint=hint)
    names = list(entries)
    shown = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    if spec.entry is not None:
        if spec.entry not in entries:
            message = f"{module.source.name} has no entry '{spec.entry}'"
            hint = did_you_mean(spec.entry, names) or f"it has {shown}"
            note = None if hint.startswith("it has") else f"the entries are {shown}"
            raise TeenyError("unknown-entry", message, where=spec.origin.place("entry"), hint=hint, note=note)
        return entries[spec.entry]
    if len(entries) == 1:
        return module.entries[0]
    own = spec.name.replace(".", "_")
    usual = f"{own}_entry_point"
    for name in (own, usual):
        if name in entries:
            return entries[name]
    raise TeenyError(
        "ambiguous-entry", f"{module.source.name} has {len(names)} entries, and none is called {own} or {usual}",
        where=spec.origin.place("ptx"), hint=f"choose one with {spec.origin.name('entry')}: {shown}",
        note=did_you_mean(spec.name, names),
    )  # fmt: skip


def grid_of(names: Namespace) -> Triple:
    """The grid in CTAs, padded with 1; any integers, since judging them is for checks. Zero where none is said."""
    return (0, 0, 0) if names.kernel.grid is None else _triple(names, names.kernel.grid, "grid")


def block_of(names: Namespace, module: Module, entry: Function, metadata: Metadata) -> Triple:
    """Threads of a CTA: the op's ``block``; for "ptx" the entry's ``.reqntid``, else 32 times the metadata's
    num_warps, else ``.maxntid`` in a Triton text, which launches what it states.

    Raises TeenyError ``block-unknown`` when none of these says it.
    """
    spec, directives = names.kernel, entry.directives
    if spec.block is not None:
        return _triple(names, spec.block, "block")
    if directives.reqntid is not None:
        return directives.reqntid
    if metadata.num_warps is not None:
        return 32 * metadata.num_warps, 1, 1
    if directives.maxntid is None:
        note = None
    elif is_triton(module, entry):
        return directives.maxntid
    else:
        most = directives.maxntid[0] * directives.maxntid[1] * directives.maxntid[2]
        note = f"the PTX says .maxntid, which only bounds it: at most {most} threads"
    raise TeenyError(
        "block-unknown", f"the PTX does not say how many threads a CTA of {entry.name} has",
        where=spec.origin.place("block"), note=note,
        hint=f"say it with {spec.origin.name('block')}; .reqntid in the PTX, or num_warps in its metadata, would too",
    )  # fmt: skip


def cluster_of(names: Namespace, entry: Function, metadata: Metadata) -> Triple:
    """CTAs of a cluster: the op's ``cluster``, ``.reqnctapercluster``, the metadata's num_ctas, else 1."""
    if names.kernel.cluster is not None:
        return _triple(names, names.kernel.cluster, "cluster")
    return entry.directives.reqnctapercluster or (metadata.num_ctas or 1, 1, 1)


def shared_of(names: Namespace, module: Module, entry: Function, metadata: Metadata) -> int:
    """Dynamic shared memory of a CTA in bytes: the op's ``shared``, the metadata's, else 0.

    Raises TeenyError ``shared-unknown`` when the entry uses an extern shared array and nothing says how large it
    is, ``bad-value`` for a negative number.
    """
    spec = names.kernel
    if spec.shared is not None:
        size = names.integer(spec.shared, "shared")
        if size < 0:
            raise TeenyError("bad-value", f"shared is {size} bytes", where=spec.origin.place("shared"))
        return size
    if metadata.shared is not None:
        return metadata.shared
    if shared_dynamic(module, entry):
        raise TeenyError(
            "shared-unknown", f"{entry.name} uses dynamic shared memory, and nothing says how many bytes",
            where=spec.origin.place("shared"),
            hint=f"say it with {spec.origin.name('shared')}, put the compiler's .json beside the .ptx, "
            "or end the PTX with a line '// meta:shared=BYTES'",
        )  # fmt: skip
    return 0


def _triple(names: Namespace, extents: Sequence[Expression], key: str) -> Triple:
    x, y, z = (*names.integers(extents, key), 1, 1)[:3]
    return x, y, z
