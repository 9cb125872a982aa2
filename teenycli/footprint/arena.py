"""Where memory lies for a walk: an address is ``place << 40 | offset``, with room below each place's first byte, so
that what misses a buffer by a little still tells which one it meant.

May import ``launch.plan``, ``ptx`` and numpy.
"""

from __future__ import annotations

from msgspec import Struct

from teenycli.launch.plan import Plan
from teenycli.ptx.code import Code
from teenycli.ptx.model import Module, Space, Variable

SHIFT = 40
HALF = 1 << SHIFT - 1

#: Places of the windows of shared, local and param memory in generic addresses; 0 is a null pointer's.
SHARED, LOCAL, PARAM = 1, 2, 3
#: First places of module variables (``.global`` and ``.const``) and of buffers.
FIRST_VARIABLE, FIRST_BUFFER = 16, 4096

WINDOWS = {"shared": SHARED << SHIFT, "local": LOCAL << SHIFT, "param": PARAM << SHIFT}


class Arena(Struct, frozen=True):
    """The places of a plan's buffers, and of the variables of an entry and what it calls.

    ``offsets`` of variables are those in their window, or their address. ``shared`` is how many bytes of shared memory
    a CTA has, ``local`` how many of local memory a call of a function has. ``names`` are the buffers in order.
    """

    places: dict[str, int]
    offsets: dict[int, int]
    shared: int
    local: int

    names: tuple[str, ...]

    def address_of(self, buffer: str) -> int:
        return self.places[buffer] << SHIFT

    def buffer_at(self, place: int) -> str | None:
        """The name of the buffer at a place."""
        index = place - FIRST_BUFFER
        return self.names[index] if 0 <= index < len(self.names) else None


def arena_of(plan: Plan, module: Module, codes: list[Code], static: int, dynamic: int) -> Arena:
    """Lay out buffers and variables. ``static`` and ``dynamic`` are bytes of shared memory."""
    places = {buffer.name: FIRST_BUFFER + k for k, buffer in enumerate(plan.buffers)}
    variables = list(module.variables)
    for code in codes:
        variables += code.variables
    offsets: dict[int, int] = {}
    ends = {Space.SHARED: 0, Space.LOCAL: 0}
    for count, variable in enumerate(variables):
        if variable.space in ends and not _is_dynamic(variable):
            align = max(variable.align, 1)
            offsets[id(variable)] = -(-ends[variable.space] // align) * align
            ends[variable.space] = offsets[id(variable)] + variable.size
        elif variable.space in (Space.GLOBAL, Space.CONST):
            offsets[id(variable)] = FIRST_VARIABLE + count % (FIRST_BUFFER - FIRST_VARIABLE) << SHIFT
    # Dynamic shared memory begins where the static ends.
    start = max(ends[Space.SHARED], static)
    end = start + dynamic
    for variable in variables:
        if variable.space is Space.SHARED and _is_dynamic(variable):
            align = max(variable.align, 1)
            offsets[id(variable)] = -(-start // align) * align
            end = max(end, offsets[id(variable)] + dynamic)
    return Arena(places, offsets, end, -(-ends[Space.LOCAL] // 16) * 16, tuple(places))


def _is_dynamic(variable: Variable) -> bool:
    return variable.space is Space.SHARED and variable.linking == "extern"
