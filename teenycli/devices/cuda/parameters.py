"""The driver's table of a kernel's parameters against ours: a difference means that one of us reads the PTX wrongly.

Pure. May import ``arch``, ``errors``, ``exits``, ``ptx.layout``, ``ptx.model``.
"""

from __future__ import annotations

from collections.abc import Sequence

from teenycli.arch import param_base
from teenycli.errors import Finding, Place, Severity, TeenyError
from teenycli.exits import Exit
from teenycli.ptx.layout import Slot, layout
from teenycli.ptx.model import Function


def compare_parameters(table: Sequence[tuple[int, int]], entry: Function, sm: int, where: Place) -> tuple[Finding, ...]:
    """Findings about the driver's ``table``, offset and size in bytes of each parameter, against ours for ``sm``.

    Raises TeenyError ``parameter-layout`` when they differ. Where the architecture's constant bank is not known,
    offsets are ours to guess: order and sizes are compared, and a warning says so.
    """
    slots = layout(entry, sm)
    known = param_base(sm) is not None
    differences = _differences(table, slots, offsets=known)
    if differences:
        raise TeenyError(
            "parameter-layout",
            f"the driver lays out the parameters of '{entry.name}' otherwise than teeny: {'; '.join(differences)}",
            where=where,
            hint="arguments would land in the wrong place: please report this with the PTX",
            exit=Exit.FAILED,
        )
    if known or not slots:
        return ()
    message = (
        f"where parameters begin on sm_{sm} is not known to this version; order and sizes of the parameters of "
        f"'{entry.name}' are as the driver has them, their offsets may differ"
    )
    return (Finding("parameter-base", message, Severity.WARNING, where),)


def _differences(table: Sequence[tuple[int, int]], slots: Sequence[Slot], *, offsets: bool) -> list[str]:
    if len(table) != len(slots):
        count = f"more than {len(slots)}" if len(table) > len(slots) else f"{len(table)}"
        return [f"it counts {count}, teeny {len(slots)}"]
    found, end = [], 0
    for slot, (offset, size) in zip(slots, table, strict=True):
        if size != slot.size or (offsets and offset != slot.offset):
            found.append(
                f"parameter {slot.index} '{slot.param.name}' has {size} bytes at offset {offset}, "
                f"by teeny {slot.size} at {slot.offset}"
            )
        elif offset < end:
            found.append(f"parameter {slot.index} '{slot.param.name}' at offset {offset} lies before {end}")
        end = offset + size
    return found
