"""What the lowering of an instruction writes with: cells, operands, masks and faults of the kernel at hand.

Cells that live across blocks have a slot: memory of the function, which LLVM turns into SSA values, or in a large
kernel the warp's frame. Within a block a cell is the LLVM value written last.

May import the rest of the package below ``ops`` and ``ptx.model``.
"""

from __future__ import annotations

from ctypes import sizeof
from typing import TYPE_CHECKING

from msgspec import Struct

from teenycli.devices.cpu import native
from teenycli.devices.cpu.flow import Flow
from teenycli.devices.cpu.layout import Context, FaultKind, FrameHead, Launch, offset
from teenycli.devices.cpu.program import Block, Cell, Inst, Placed, Program
from teenycli.devices.cpu.rawness import raw_cells
from teenycli.devices.cpu.specials import special
from teenycli.devices.cpu.strides import Strides
from teenycli.devices.cpu.value import (
    BITS,
    Unit,
    Value,
    Writer,
    constant_of_bits,
    double_bits,
    integer,
    single_bits,
)
from teenycli.ptx.code import Mem, Operand, Reg, Special, Symbol, Vec
from teenycli.ptx.model import Float, Int, Variable

if TYPE_CHECKING:
    from teenycli.devices.cpu.ops.access import Group

#: LLVM type that holds a PTX register of a type.
_STORED = {"pred": "i1", "f32": "float", "f64": "double", "f16": "i16", "bf16": "i16", "f16x2": "i32", "b128": "i128"}

#: Above this many blocks, slots lie in the frame: as SSA values they would all meet in the scheduler.
SSA_BLOCKS = 24


def stored_type(type: str) -> str:
    """The LLVM type of a register declared with a PTX type."""
    return _STORED.get(type) or f"i{type.lstrip('bsuf')}"


class Slot(Struct):
    """Memory of a cell: an LLVM pointer, the type it holds, and its place in the frame when it is saved there."""

    pointer: str
    type: str
    uniform: bool
    raw: bool
    frame_offset: int


class Lowering:
    """The lowering of one kernel; what instruction lowerings write with.

    ``w`` is the writer; ``exec`` the lanes that an instruction acts for: the active ones that pass its guard.
    """

    def __init__(self, program: Program, flow: Flow, unit: Unit) -> None:
        self.program = program
        self.flow = flow
        self.unit = unit
        self.w = Writer(unit)
        self.meets = any(block.kind == "meet" and flow.is_divergent(block) for block in flow.blocks)
        self.suspends = self.meets or any(block.kind == "suspend" or block.spins for block in flow.blocks)
        parts = any(block.kind in ("switch", "dispatch", "return") for block in flow.blocks)
        self.scheduled = bool(flow.divergent) or self.suspends or parts
        self.in_frame = len(flow.blocks) > SSA_BLOCKS
        self.raw = raw_cells(flow)
        self.env: dict[Cell, Value] = {}
        self.dirty: set[Cell] = set()
        #: Cells whose slots some block leaves with what and, or, xor made.
        self.logical: set[Cell] = set()
        self.block = flow.blocks[0]
        self.inst: Inst | None = None
        self.mask = ""
        self.guard: Value | None = None
        self.known_specials: dict[Special, Value] = {}
        self.memory: dict[int, Group] = {}
        #: Tests within the block of whether lanes lie in a row, and the first lane of each (``ops.chains``).
        self.rows: dict[tuple[str, str, int, int], tuple[str, str]] = {}
        #: A cell that holds a value, by the value's name.
        self.held: dict[str, Cell] = {}
        self.strides = Strides(flow, unit.group)
        self.mask_bits = ""
        self.frame_size = sizeof(FrameHead) + 8 * unit.width
        self.slots: dict[Cell, Slot] = {}
        self._make_slots()

    def begin(self, block: Block, memory: dict[int, Group]) -> None:
        """Forget what was known within the block before. ``memory`` are the groups of its accesses, by site."""
        self.block = block
        self.env = {}
        self.dirty = set()
        self.mask_bits = ""
        self.memory = memory
        self.rows = {}

    # --- slots -----------------------------------------------------------------------------------------------

    def _make_slots(self) -> None:
        alive = 0
        for live in self.flow.live_in:
            alive |= live
        for cell in self.flow.cells:
            if alive >> cell.index & 1:
                uniform = self.flow.is_uniform(cell)
                kind = "float" if cell in self.raw else stored_type(cell.type)
                size = max(BITS[kind] // 8, 1) * (1 if uniform else self.unit.width) if kind != "i1" else 8
                place = -(-self.frame_size // min(size, 64)) * min(size, 64)
                self.frame_size = place + size
                self.slots[cell] = Slot(f"%s{cell.index}", kind, uniform, cell in self.raw, place)
        self.frame_size = -(-self.frame_size // 64) * 64

    def slot_lines(self) -> list[str]:
        lines = []
        for slot in self.slots.values():
            kind = self.w.type_of(slot.type, slot.uniform)
            if self.in_frame:
                lines.append(f"  {slot.pointer} = getelementptr i8, ptr %frame, i64 {slot.frame_offset}")
            else:
                lines.append(f"  {slot.pointer} = alloca {kind}")
                lines.append(f"  store {kind} zeroinitializer, ptr {slot.pointer}")
        return lines

    def zero_lines(self) -> list[str]:
        """In frames: cells that some way reaches before they are written start as zero."""
        if not self.in_frame:
            return []
        start = self.flow.live_in[0]
        return [
            f"  store {self.w.type_of(s.type, s.uniform)} zeroinitializer, ptr {s.pointer}, align 1"
            for cell, s in self.slots.items()
            if start >> cell.index & 1
        ]

    def copy_slots(self, *, save: bool) -> None:
        """Between slots and the frame, for a warp that waits; nothing to do where slots lie in the frame."""
        if self.in_frame:
            return
        for slot in self.slots.values():
            kind = self.w.type_of(slot.type, slot.uniform)
            place = self.w.assign(f"getelementptr i8, ptr %frame, i64 {slot.frame_offset}")
            source, target = (slot.pointer, place) if save else (place, slot.pointer)
            value = self.w.assign(f"load {kind}, ptr {source}, align 1")
            self.w.line(f"store {kind} {value}, ptr {target}, align 1")

    # --- reading and writing cells ------------------------------------------------------------------------------

    def load(self, cell: Cell) -> Value:
        """The value of a cell, with the type it is stored as (an i32 where a float32 of it is canonical)."""
        known = self.env.get(cell)
        if known is None:
            slot = self.slots.get(cell)
            if slot is None:  # read before any write, and nowhere else
                known = integer("i1" if cell.type == "pred" else "i8", 0)
                known = self.w.resize(known, "i" + str(BITS[stored_type(cell.type)])) if cell.type != "pred" else known
            else:
                kind = self.w.type_of(slot.type, slot.uniform)
                text = self.w.assign(f"load {kind}, ptr {slot.pointer}" + (", align 1" if self.in_frame else ""))
                known = Value(slot.type, text, slot.uniform, slot.raw)
                if cell in self.logical:
                    self.w.mark_logical(known)
                self.held[text] = cell
            self.env[cell] = known
        return known

    def store(self, cell: Cell, value: Value) -> None:
        """Write a cell for the lanes the instruction acts for; others keep what they hold where that matters."""
        if value.raw and cell not in self.raw:  # before the blends: what other lanes hold stays as it is
            value = self.w.canonical(value)
        if self.guard is not None:
            value = self._blend(self.guard, value, self.load(cell))
        if self.flow.must_merge(cell, self.block):
            value = self._blend(Value("i1", self.mask, False), value, self.load(cell))
        if self.flow.is_uniform(cell):
            value = self.w.first(value)
        self.env[cell] = value
        self.held.setdefault(value.text, cell)
        if cell in self.slots:
            self.dirty.add(cell)

    def _blend(self, condition: Value, new: Value, old: Value) -> Value:
        if new.type != old.type:
            old = self.w.bitcast(old, new.type)
        return self.w.select(condition, new, old)

    def flush(self) -> None:
        """Put what the block wrote, and a later one may read, into slots."""
        live = self.flow.live_out[self.block.index]
        for cell in sorted(self.dirty, key=lambda c: c.index):
            if live >> cell.index & 1:
                slot = self.slots[cell]
                value = self.w.bitcast(self.env[cell], slot.type)
                if self.w.is_logical(value):
                    self.logical.add(cell)
                kind = self.w.type_of(slot.type, slot.uniform)
                text = value.text if slot.uniform else self.w.lanes(value)
                self.w.line(f"store {kind} {text}, ptr {slot.pointer}" + (", align 1" if self.in_frame else ""))
        self.dirty.clear()

    # --- operands ------------------------------------------------------------------------------------------------

    def read(self, operand: Operand | None, type: str) -> Value:
        """An operand as the LLVM type ``type``: low bits of a wider register, a narrower one zero-extended."""
        assert self.inst is not None
        if isinstance(operand, Reg):
            return self.read_cell(self.inst.scope.cell(operand), type, negated=operand.negated)
        if isinstance(operand, Int):
            return self._as_type(integer("i128" if BITS[type] > 64 else "i64", operand.value), type)
        if isinstance(operand, Float):
            return self._constant(operand, type)
        if isinstance(operand, Special):
            return self._as_type(special(self, operand), type)
        if isinstance(operand, Symbol):
            return self.address_of(operand, type)
        if isinstance(operand, Mem):  # the address of what lies in a frame
            return self.w.add(self.read(operand.base, type), integer(type, operand.offset))  # type: ignore[arg-type]
        raise AssertionError(operand)

    def read_cell(self, cell: Cell, type: str, *, negated: bool = False) -> Value:
        value = self._as_type(self.load(cell), type)
        return self.w.negate(value) if negated else value

    def _as_type(self, value: Value, type: str) -> Value:
        if value.type == type:
            return value
        if value.bits == BITS[type]:
            return self.w.bitcast(value, type)
        if value.is_float:
            value = self.w.bitcast(value, f"i{value.bits}")
        wanted = f"i{BITS[type]}"
        return self.w.bitcast(self.w.resize(value, wanted), type)

    def _constant(self, operand: Float, type: str) -> Value:
        bits = operand.bits
        if operand.width == 32 and BITS[type] == 64:
            bits = double_bits(bits)
        elif operand.width == 64 and BITS[type] == 32:
            bits = single_bits(bits)
        return constant_of_bits(type, bits)

    def address_of(self, symbol: Symbol, type: str) -> Value:
        """The address of a variable within its own space: an offset for a window, the whole for global and const."""
        assert isinstance(symbol.target, Variable)
        place = self.place(symbol.target)
        address = place.offset if place.id < 16 else place.address
        return integer(type, address + symbol.offset)

    def place(self, variable: Variable) -> Placed:
        assert self.inst is not None
        return self.program.resolve_dynamic(self.inst.scope.place(variable))

    def write(self, operand: Operand | None, value: Value, *, signed: bool = False) -> None:
        """Write a destination, extended to a wider register.

        PTX ISA, "Operand Size Exceeding Instruction-Type Size".
        """
        if operand is None:
            return
        assert self.inst is not None
        assert isinstance(operand, Reg), operand
        cell = self.inst.scope.cell(operand)
        wanted = BITS[stored_type(cell.type)]
        if value.bits != wanted:
            value = self.w.resize(self.w.bitcast(value, f"i{value.bits}"), f"i{wanted}", signed)
        self.store(cell, value)

    def elements(self, operand: Operand | None) -> list[Operand | None]:
        """The elements of a vector operand, or the operand itself."""
        if isinstance(operand, Vec):
            return list(operand.items)
        if isinstance(operand, Reg) and operand.register.vector > 1 and operand.part is None:
            return [Reg(operand.register, part) for part in "xyzw"[: operand.register.vector]]
        return [operand]

    # --- masks -----------------------------------------------------------------------------------------------------

    @property
    def active(self) -> Value:
        """Active lanes of the block, guard apart."""
        return Value("i1", self.mask, False)

    @property
    def exec(self) -> Value:
        """Active lanes that pass the guard."""
        if self.guard is None:
            return self.active
        return self.w.both(self.active, self.w.varying(self.guard))

    def bits_of(self, mask: Value) -> str:
        """A mask as an integer; that of the active lanes is made once a block."""
        if mask.text == self.mask:
            if not self.mask_bits:
                self.mask_bits = self.w.bits(self.mask)
            return self.mask_bits
        return self.w.bits(self.w.lanes(mask))

    def field(self, structure: str, name: str, type: str, index: int = 0) -> str:
        """Load a field of ``%ctx`` or ``%launch`` at the function's entry, once; its SSA name."""
        key = Special(f"{structure}.{name}.{index}")
        known = self.known_specials.get(key)
        if known is None:
            place = offset(Context if structure == "ctx" else Launch, name, index)
            text = f"%{structure}.{name}.{index}"
            # The CTA changes under a warp function that is inlined in the driver's loop; nothing else does.
            fixed = "" if name == "cta" else ", !invariant.load !2"
            self.w.head += [
                f"  {text}.p = getelementptr i8, ptr %{structure}, i64 {place}",
                f"  {text} = load {type}, ptr {text}.p, align 4{fixed}",
            ]
            known = self.known_specials[key] = Value(type, text, True)
        return known.text

    def in_head(self, key: Special, type: str, uniform: bool, text: str) -> Value:
        """A value computed once at the function's entry."""
        known = self.known_specials.get(key)
        if known is None:
            name = f"%h{len(self.known_specials)}"
            self.w.head.append(f"  {name} = {text}")
            known = self.known_specials[key] = Value(type, name, uniform)
        return known

    def room(self, name: str, nbytes: int) -> str:
        """A pointer to as many bytes of the function's own: those that were asked for first under this name."""
        return self.in_head(Special(name), "ptr", True, f"alloca [{nbytes} x i8], align 64").text

    # --- faults ----------------------------------------------------------------------------------------------------

    def site(self) -> int:
        assert self.inst is not None
        return self.inst.site

    def fault(self, kind: FaultKind | str, lane: str = "0", address: str = "0") -> None:
        """Report a fault, its kind known or an i32, and leave the warp. Ends the LLVM block."""
        self.unit.helpers.setdefault("fault", native.FAULT)
        number = kind if isinstance(kind, str) else int(kind)
        self.w.line(f"call void @teeny.fault(ptr %ctx, i32 {number}, i32 {self.site()}, i64 {address}, i32 {lane})")
        self.w.jump("dead")

    def check_dead(self) -> None:
        """After a call that may have faulted: leave the warp if it did."""
        place = self.w.assign(f"getelementptr i8, ptr %ctx, i64 {offset(Context, 'dead')}")
        flag = self.w.assign(f"load i32, ptr {place}")
        test = self.w.assign(f"icmp ne i32 {flag}, 0")
        after = self.w.fresh_label("alive")
        self.w.branch(test, "dead", after, likely=False)
        self.w.label(after)
