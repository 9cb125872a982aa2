"""Rules on what buffers hold against what the body takes it for: f32 where it computes with f16, integers for floats.

Bits carry no type: what a kernel only moves, or takes apart, may be of any. May import ``checks.subject`` and what it
may.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from teenycli.checks.subject import Subject
from teenycli.dtypes import DTYPES, DType
from teenycli.errors import Finding, Severity
from teenycli.launch.plan import Address, Argument, Buffer
from teenycli.ptx.layout import Slot
from teenycli.ptx.model import type_width
from teenycli.ptx.usage import Use

_FLOATS = ("f16", "bf16", "f32", "f64", "e4m3", "e5m2")


def element_types(subject: Subject) -> Iterator[Finding]:
    """What the body computes with is what the buffer holds.

    Certain, and an error, is a float type in the accesses themselves that is of another width than the buffer's
    elements. What is concluded from where a value goes to or comes from is a warning.
    """
    for argument, slot, buffer, use in _pointers(subject):
        accesses = {_element(access.type) for access in use.accesses if access.kind != "other"}
        # What is loaded and stored as a double, say, may be two singles that are only moved.
        moved = {each for each in accesses & {*_FLOATS} if DTYPES[each].size != buffer.dtype.size}
        if moved:
            moved -= subject.compiled.computed
        misfit = _misfit(buffer.dtype, {*use.elements} - moved, accesses)
        if misfit is not None:
            yield _finding(subject, argument, slot, buffer, misfit, certain=_is_certain(buffer.dtype, accesses))


def _pointers(subject: Subject) -> Iterator[tuple[Argument, Slot, Buffer, Use]]:
    """Arguments and members of arguments that point to a buffer, with what the body does through them."""
    for argument, slot, item, use in subject.passed:
        if isinstance(item.value, Address) and item.value.buffer is not None and use is not None and use.address:
            yield argument, slot, subject.plan.buffer(item.value.buffer), use


def _misfit(dtype: DType, kinds: set[str], accesses: set[str]) -> str | None:
    """What the memory holds to the body, in words, if that is not ``dtype``; ``kinds`` are ``Roles.elements``.

    Bytes may be records of anything.
    """
    if dtype.name == "u8":
        return None
    floats = sorted(kinds & set(_FLOATS))
    if dtype.name in floats:
        return None
    if floats:
        return None if _may_stand_for(dtype, floats) else f"computes with {' and '.join(floats)}"
    widths = {type_width(kind) or 0 for kind in accesses}
    if dtype.is_float:
        signed = sorted(kind for kind in kinds if kind in ("s16", "s32", "s64"))
        if signed and signed == sorted(kinds) and type_width(signed[0]) == 8 * dtype.size:
            return f"computes with integers of {8 * dtype.size} bits"
        # Half a float is no use to a kernel; single bytes are how anything may be copied.
        if widths and 8 < max(widths) < 8 * dtype.size:
            return f"moves only {max(widths)} bits at a time"
    return None


def _may_stand_for(dtype: DType, floats: Sequence[str]) -> bool:
    """Whether bits of ``floats`` may be kept under the name of ``dtype``: those of 8 bits in bytes."""
    return dtype.size == 1 and not dtype.is_float and all(DTYPES[name].size == 1 for name in floats)


def _is_certain(dtype: DType, accesses: set[str]) -> bool:
    floats = [DTYPES[kind] for kind in accesses if kind in _FLOATS]
    return bool(floats) and len(floats) == len(accesses) and all(each.size != dtype.size for each in floats)


def _element(access: str) -> str:
    """The element type of an access: that of each half of a packed one."""
    return access.removesuffix("x2")


def _finding(subject: Subject, argument: Argument, slot: Slot, buffer: Buffer, misfit: str, certain: bool) -> Finding:
    return Finding(
        "buffer-dtype",
        f"argument {argument.index} '{argument.name}' points to {buffer.dtype} elements, and through parameter "
        f"{slot.index} the kernel {misfit}",
        Severity.ERROR if certain else Severity.WARNING,
        where=subject.key(argument.source),
        hint=f"give '{buffer.name}' the dtype that the kernel takes, or pass the buffer that has it",
        note=subject.declared(slot),
    )
