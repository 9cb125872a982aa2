"""The threads of a walk: who they are, and what the operands of an instruction are to them.

May import ``footprint``'s ``arena``, ``lanes`` and ``trace``, ``launch.plan`` and ``ptx``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from msgspec import Struct, field

from teenycli.footprint.arena import Arena
from teenycli.footprint.cells import Cells
from teenycli.footprint.lanes import Array, Value, constant, known, resize, unknown
from teenycli.footprint.slices import Slice
from teenycli.footprint.trace import Where
from teenycli.launch.plan import Launch
from teenycli.ptx.code import Mem, Operand, Reg, Register, Special, Symbol
from teenycli.ptx.model import Float, Int, Space, Variable


class Frame(Struct):
    """One call of a function: its registers, and the ``.param`` variables around its own calls."""

    slice: Slice
    depth: int = 0
    registers: dict[Register, Value] = field(default_factory=dict)
    cells: Cells = field(default_factory=Cells)


class Threads:
    """The threads of the CTAs ``ctas`` (numbers in the grid) of a launch, a lane each.

    ``params`` are the bytes of the parameter buffer, ``offsets`` the place of each parameter in it, by ``id``.
    """

    def __init__(
        self, launch: Launch, ctas: Array, arena: Arena, params: bytes, offsets: Mapping[int, int]
    ) -> None:  # fmt: skip
        self.launch, self.arena, self.params, self.offsets = launch, arena, params, offsets
        self.where = Where(launch.index, launch.grid, launch.block, ctas, launch.threads)
        self.count = len(ctas) * launch.threads
        self._specials: dict[tuple[str, str | None], Value] = {}

    def read(self, frame: Frame, operand: Operand | None, width: int) -> Value:
        """An operand as ``width`` bits."""
        width = width if width in (1, 8, 16, 32, 64) else 64
        if isinstance(operand, Reg):
            return _register(frame, operand, width)
        if isinstance(operand, Int):
            return constant(operand.value, width)
        if isinstance(operand, Float) and operand.width == width:
            return constant(operand.bits, width)
        if isinstance(operand, Special):
            value = self._special(operand)
            return Value(resize(value.bits, width), value.known)
        if isinstance(operand, Symbol) and isinstance(operand.target, Variable):
            address = self._address_of(frame, operand.target)
            return unknown(width) if address is None else constant(address + operand.offset, width)
        return unknown(width)

    def address(self, frame: Frame, mem: Mem) -> Value:
        """The address in brackets, in the state space of the instruction."""
        if isinstance(mem.base, Reg):
            value = self.read(frame, mem.base, 64)
            return Value(value.bits + np.uint64(mem.offset & 2**64 - 1), value.known) if mem.offset else value
        start = mem.base if isinstance(mem.base, int) else None
        if isinstance(mem.base, Variable):
            start = self._address_of(frame, mem.base)
        return unknown(64) if start is None else constant(start + mem.offset, 64)

    def _address_of(self, frame: Frame, variable: Variable) -> int | None:
        """Of a parameter its place in the parameter buffer. Each call has local memory of its own."""
        offset = self.offsets.get(id(variable), self.arena.offsets.get(id(variable)))
        if offset is not None and variable.space is Space.LOCAL:
            return offset + frame.depth * self.arena.local
        return offset

    # --- PTX ISA, "Special Registers" ---

    def _special(self, special: Special) -> Value:
        key = special.name, special.part
        if key not in self._specials:
            self._specials[key] = self._make(*key)
        return self._specials[key]

    def _make(self, name: str, part: str | None) -> Value:
        launch = self.launch
        axis = "xyz".find(part or "x")
        if name in ("%tid", "%ctaid") and axis >= 0:
            extents = launch.block if name == "%tid" else launch.grid
            below = int(np.prod(extents[:axis], dtype=np.int64))
            if name == "%tid":
                return self._of_thread(lambda thread: thread // below % extents[axis])
            return known(np.repeat((self.where.ctas // below % extents[axis]).astype(np.uint32), launch.threads))
        if name in ("%ntid", "%nctaid") and axis >= 0:
            return constant((launch.block if name == "%ntid" else launch.grid)[axis], 32)
        if name == "%laneid":
            return self._of_thread(lambda thread: thread % 32)
        if name == "%warpid":
            return self._of_thread(lambda thread: thread // 32)
        if name == "%nwarpid":
            return constant(-(-launch.threads // 32), 32)
        return self._of_cluster(name, part)

    def _of_thread(self, number: Callable[[Array], Array]) -> Value:
        """What is the same for a thread in each CTA, from its number there."""
        return known(np.tile(number(np.arange(self.launch.threads)).astype(np.uint32), len(self.where.ctas)))

    def _of_cluster(self, name: str, part: str | None) -> Value:
        """Without clusters each CTA is its own."""
        if self.launch.cluster != (1, 1, 1):
            return unknown(32)
        if name in ("%clusterid", "%nclusterid"):
            return self._make("%ctaid" if name == "%clusterid" else "%nctaid", part)
        if name in ("%cluster_ctaid", "%cluster_ctarank"):
            return constant(0, 32)
        return constant(1, 32) if name in ("%cluster_nctaid", "%cluster_nctarank") else unknown(32)


def _register(frame: Frame, operand: Reg, width: int) -> Value:
    value = frame.registers.get(operand.register)
    if value is None or operand.part is not None or operand.register.vector > 1:
        return unknown(width)
    bits = resize(value.bits, width)
    if bits is value.bits and not operand.negated:
        return value
    if operand.negated:
        bits = ~bits if width == 1 else np.zeros(1, bits.dtype) - bits
    return Value(bits, value.known)
