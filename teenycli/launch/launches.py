"""The launches of an op, one after another: each with its own grid, arguments and scratch memory.

May import ``dtypes``, ``errors``, ``manifest``, ``ptx`` and, in this room, ``arguments``, ``geometry``, ``namespace``
and ``plan``.
"""

from __future__ import annotations

from msgspec.structs import replace

from teenycli.dtypes import DTYPES
from teenycli.errors import Place, TeenyError
from teenycli.launch.arguments import argument
from teenycli.launch.geometry import block_of, cluster_of, grid_of, shared_of
from teenycli.launch.namespace import BUFFER_LIMIT, Namespace
from teenycli.launch.plan import Address, Argument, Buffer, Field, Launch
from teenycli.manifest.spec import KernelSpec
from teenycli.ptx.layout import layout
from teenycli.ptx.metadata import Metadata, hidden_count
from teenycli.ptx.model import Function, Module, Triple

#: What the driver, and the CPU device, align a buffer to.
BUFFER_ALIGN = 256
#: Most launches of one op.
LAUNCH_LIMIT = 1000
#: Names of the buffers behind hidden parameters, in the order of the parameters. No buffer of a user has a blank.
SCRATCH = ("global scratch", "profile scratch")


def launches_of(
    names: Namespace, module: Module, entry: Function, metadata: Metadata, sm: int
) -> tuple[tuple[Launch, ...], tuple[Buffer, ...]]:
    """Every launch of ``entry``, and the scratch buffers that they need.

    Raises TeenyError, placed at its key: ``bad-value`` for a count of launches that is none, what expressions and
    ``geometry`` raise, ``bad-argument``, ``value-out-of-range``, ``buffer-too-large``.
    """
    spec = names.kernel
    hidden = _hidden_params(spec, module, entry, metadata)
    block, cluster = block_of(names, module, entry, metadata), cluster_of(names, entry, metadata)
    count = _count(names)
    launches: list[Launch] = []
    scratch: list[Buffer] = []
    for index in range(count):
        here = names.at(index)
        grid = grid_of(here)
        args = [argument(here, each, k) for k, each in enumerate(spec.args)]
        # Each launch has scratch memory of its own, since each wants it zeroed.
        suffix = f" {index}" if count > 1 else ""
        appended, needed = _hidden(spec, entry, hidden, metadata, grid, suffix)
        scratch += needed
        launch = Launch(
            op=spec.name,
            index=index,
            entry=entry.name,
            grid=grid,
            block=block,
            args=_placed(args, appended, entry, sm),
            cluster=cluster,
            shared=shared_of(here, module, entry, metadata),
            cooperative=metadata.cooperative if spec.cooperative is None else spec.cooperative,
            pdl=metadata.pdl if spec.pdl is None else spec.pdl,
        )
        launches.append(launch)
    return tuple(launches), tuple(scratch)


def _count(names: Namespace) -> int:
    if names.kernel.launches is None:
        return 1
    count = names.integer(names.kernel.launches, "launches")
    if not 1 <= count <= LAUNCH_LIMIT:
        what = "nothing would run" if count < 1 else f"at most {LAUNCH_LIMIT:,} can be"
        raise TeenyError("bad-value", f"{count:,} launches: {what}", where=names.kernel.origin.place("launches"))
    return count


def check_size(buffer: Buffer, where: Place) -> None:
    """Raises TeenyError ``buffer-too-large``."""
    if buffer.nbytes >= BUFFER_LIMIT:
        message = f"the buffer '{buffer.name}' takes {buffer.nbytes:,} bytes; it must be below {BUFFER_LIMIT:,}"
        raise TeenyError("buffer-too-large", message, where=where)


def _hidden_params(spec: KernelSpec, module: Module, entry: Function, metadata: Metadata) -> int:
    if spec.hidden is None:
        return hidden_count(module, entry, metadata)
    if spec.hidden > len(entry.params):
        message = f"hidden is {spec.hidden}, but the entry {entry.name} has {len(entry.params)} parameters"
        raise TeenyError("bad-value", message, where=spec.origin.place("hidden"))
    return spec.hidden


def _hidden(
    spec: KernelSpec, entry: Function, count: int, metadata: Metadata, grid: Triple, suffix: str
) -> tuple[list[Argument], list[Buffer]]:
    """The arguments for the ``count`` last parameters, and the buffers they point to; null where nothing is needed."""
    ctas = max(grid[0], 0) * max(grid[1], 0) * max(grid[2], 0)
    sizes = (metadata.global_scratch_size, metadata.profile_scratch_size)
    aligns = (metadata.global_scratch_align, metadata.profile_scratch_align)
    source = metadata.source or spec.origin.name("hidden")
    args: list[Argument] = []
    buffers: list[Buffer] = []
    for what, size, align in list(zip(SCRATCH, sizes, aligns, strict=True))[:count]:
        name = f"{what}{suffix}"
        address = Address()
        if size and ctas:
            scratch = Buffer(
                name, DTYPES["u8"], (size * ctas,), "scratch", "zeros", None, max(align or 1, BUFFER_ALIGN), source
            )
            check_size(scratch, spec.origin.place("grid"))
            buffers.append(scratch)
            address = Address(name)
        index = len(entry.params) - count + len(args)
        args.append(Argument(index, what, "ptr", 8, (Field("ptr", address),), hidden=True, source=source))
    return args, buffers


def _placed(args: list[Argument], hidden: list[Argument], entry: Function, sm: int) -> tuple[Argument, ...]:
    """The arguments at the offsets of their parameters; None where the entry has no such parameter, hidden ones not
    counted."""
    offsets = [slot.offset for slot in layout(entry, sm)]
    visible = len(offsets) - len(hidden)
    placed = [replace(arg, offset=offsets[arg.index] if arg.index < visible else None) for arg in args]
    return (*placed, *(replace(arg, offset=offsets[arg.index]) for arg in hidden))
