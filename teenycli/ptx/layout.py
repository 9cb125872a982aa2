"""Where each parameter of an entry lies in the parameter buffer.

A parameter is aligned against the absolute address of the constant bank, not against offset 0 (measured; see
``docs/layout.md``), so offsets depend on the architecture that the text is assembled for.

May import ``arch`` and ``ptx.model``.
"""

from __future__ import annotations

from msgspec import Struct

from teenycli.arch import param_base
from teenycli.ptx.model import Function, Variable


class Slot(Struct, frozen=True):
    """A parameter with its place: ``offset``, ``size`` and ``align`` in bytes."""

    index: int
    param: Variable
    offset: int
    size: int
    align: int


def layout(entry: Function, sm: int) -> tuple[Slot, ...]:
    """The slots of ``entry``'s parameters on architecture ``sm``.

    An architecture whose bank is not known is laid out from a base of 0; that differs only for alignments over 16.
    """
    base = param_base(sm) or 0
    slots = []
    end = 0
    for index, param in enumerate(entry.params):
        align = max(param.align, 1)
        offset = (base + end + align - 1) // align * align - base
        slots.append(Slot(index, param, offset, param.size, align))
        end = offset + param.size
    return tuple(slots)


def layout_size(slots: tuple[Slot, ...]) -> int:
    """Bytes from the start of the buffer to the end of its last parameter."""
    return slots[-1].offset + slots[-1].size if slots else 0
