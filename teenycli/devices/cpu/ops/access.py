"""What loads, stores and atomics access, and whether it may be (PTX ISA 9.7.9): windows, bounds, alignment.

Accesses of a block through one register share one test, made when the first of them comes; where it fails, and for
whatever lies otherwise than guessed, there is code out of line.
"""

from __future__ import annotations

from ctypes import sizeof

from msgspec import Struct, field

from teenycli.devices.cpu.gather import require_locate
from teenycli.devices.cpu.layout import (
    ID_SHIFT,
    LOCAL_ID,
    OFFSET_MASK,
    PARAM_ID,
    SHARED_ID,
    Entry,
)
from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.native import ENTRY, first_lane
from teenycli.devices.cpu.ops.anchors import Anchor, anchor_of
from teenycli.devices.cpu.ops.chains import Chain, chain_of
from teenycli.devices.cpu.ops.parts import take_part
from teenycli.devices.cpu.program import Block, Handover, Inst, cells_written
from teenycli.devices.cpu.registry import Mods
from teenycli.devices.cpu.value import Value, integer
from teenycli.ptx.code import Mem, Op, Reg
from teenycli.ptx.model import Variable, type_width

_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_ENTRY_SIZE = sizeof(Entry)
_LOW = 2**32 - 1


class Access(Struct):
    """One access: ``window`` is generic, shared, local or param; ``count`` elements of ``size`` bytes at ``offset``.

    ``wraps``: the offset is added in 32 bits, as compilers rely on where they move a constant out of an index below 0.
    """

    window: str
    count: int
    size: int
    offset: int
    store: bool
    order: str = ""
    wraps: bool = False

    @property
    def span(self) -> int:
        return self.count * self.size


class Group(Struct):
    """Accesses of one block through one value of a register, ``stride`` bytes from lane to lane as guessed.

    ``low`` and ``high`` bound a lane's offsets. ``tests`` has (ok, host address) for each part of a warp, ``chain`` how
    the register was made.
    """

    stride: int
    low: int
    high: int
    align: int
    tests: list[tuple[str, str]] = field(default_factory=list)
    chain: Chain | None = None


# --- what an instruction accesses ----------------------------------------------------------------------------------


def space_of(mods: Mods) -> str:
    return mods.get("space", "generic").split("::")[0]


def _memory_operand(op: Op) -> Mem | None:
    index = {"ld": 1, "ldu": 1, "st": 0}.get(op.opcode) if "bulk" not in op.mods else None
    mem = op.operands[index] if index is not None else None
    return mem if isinstance(mem, Mem) else None


def fold_base(x: Lowering, inst: Inst, mem: Mem, window: str) -> tuple[str, int]:
    """The window and the byte offset of an address, with a variable or a number at its base folded into the offset."""
    offset = mem.offset
    if isinstance(mem.base, Variable):
        place = x.program.resolve_dynamic(inst.scope.place(mem.base))
        window = {SHARED_ID: "shared", LOCAL_ID: "local", PARAM_ID: "param"}.get(place.id, "generic")
        offset += place.offset if window != "generic" else place.address
    elif isinstance(mem.base, int):
        offset += mem.base
    return window, offset


def wraps(mem: Mem, window: str) -> bool:
    """Whether the base is a register of 32 bits, into a space whose addresses have no more."""
    return window in ("shared", "local") and isinstance(mem.base, Reg) and type_width(mem.base.register.type) == 32


def access_of(x: Lowering, inst: Inst, mem: Mem) -> Access:
    """What ``inst`` accesses, with an address in a variable folded into ``offset``."""
    mods = inst.op.mods
    window = space_of(mods)
    if window == "param":
        window = "param" if x.program.is_entry_param(inst.scope, mem) else "local"
    elif window in ("global", "const"):
        window = "generic"
    window, offset = fold_base(x, inst, mem, window)
    order = next((m for m in ("volatile", "relaxed", "acquire", "release") if m in mods.values()), "")
    count = _VECTORS.get(mods.get("vec", ""), 1)
    size = (type_width(mods["type"]) or 0) // 8
    return Access(window, count, size, offset, "st" in (inst.op.opcode, *mods), order, wraps(mem, window))


def plan_block(x: Lowering, block: Block) -> dict[int, Group]:
    """Group the block's accesses; the key is the instruction's site."""
    groups: dict[tuple[object, ...], Group] = {}
    found: dict[int, Group] = {}
    version: dict[object, int] = {}
    for step in block.steps:
        mem = None if isinstance(step, Handover) else _memory_operand(step.op)
        if mem is not None and isinstance(step, Inst) and isinstance(mem.base, Reg):
            access = access_of(x, step, mem)
            cell = step.scope.cell(mem.base)
            stride = x.strides.of(cell)
            aligned = stride is not None and stride % access.span == access.offset % access.span == 0
            if stride is not None and aligned and access.window != "local":
                key = (cell, version.get(cell, 0), access.window, access.store)
                group = groups.setdefault(key, Group(stride, access.offset, access.offset, 1))
                group.low = min(group.low, access.offset)
                group.high = max(group.high, access.offset + access.span)
                group.align = max(group.align, access.span)
                found[step.site] = group
        for cell in cells_written(step):
            version[cell] = version.get(cell, 0) + 1
    return found


# --- checks --------------------------------------------------------------------------------------------------------


def _bounds(x: Lowering, access: Access, address: str) -> tuple[str, str, str]:
    """Base, size and offset (all i64) of the buffer that a scalar address lies in; size 0 where there is none."""
    w = x.w
    if access.window == "shared":
        return x.field("ctx", "shared", "i64"), x.field("ctx", "shared_size", "i64"), address
    if access.window == "param":
        address = w.assign(f"or i64 {address}, {PARAM_ID << ID_SHIFT}")
    entries, table = x.field("ctx", "entries", "i64"), x.field("ctx", "table", "ptr")
    number = w.assign(f"lshr i64 {address}, {ID_SHIFT}")
    known = w.assign(f"icmp ult i64 {number}, {entries}")
    row = w.assign(f"select i1 {known}, i64 {number}, i64 0")
    entry = w.assign(f"getelementptr [{_ENTRY_SIZE} x i8], ptr {table}, i64 {row}")
    base = w.assign(f"load i64, ptr {entry}, !invariant.load !2")
    place = w.assign(f"getelementptr i8, ptr {entry}, i64 {ENTRY['writable' if access.store else 'size']}")
    size = w.assign(f"load i64, ptr {place}, !invariant.load !2")
    return base, size, w.assign(f"and i64 {address}, {OFFSET_MASK}")


def _inside(x: Lowering, offset: str, size: str, low: int, span: int, align: int) -> str:
    """Whether ``span`` bytes from ``offset + low`` lie within ``size``, and ``offset`` is aligned; an i1."""
    w = x.w
    x.unit.declare("llvm.usub.sat.i64", "i64", ["i64", "i64"])
    first = w.assign(f"add i64 {offset}, {low}") if low else offset
    limit = w.assign(f"call i64 @llvm.usub.sat.i64(i64 {size}, i64 {span - 1})")
    inside = w.assign(f"icmp ult i64 {first}, {limit}")
    if align == 1:
        return inside
    rest = w.assign(f"and i64 {offset}, {align - 1}")
    aligned = w.assign(f"icmp eq i64 {rest}, 0")
    return w.assign(f"and i1 {inside}, {aligned}")


def test_group(x: Lowering, group: Group, access: Access, base: Value) -> None:
    """Emit the group's tests: do active lanes lie as guessed, and all accesses within one buffer."""
    w, g = x.w, x.unit.group
    group.chain = chain = chain_of(x, base, group.stride)
    anchored = _anchored(x, access, chain)
    for part in range(w.width // g):
        regular, root = chain.test(x, part)
        if anchored is None:
            start, size, offset = _bounds(x, access, chain.first(x, root))
        else:
            anchor, rest = anchored
            start, size = anchor.base, anchor.size
            offset = w.assign(f"add i64 {anchor.offset}, {rest.first(x, root)}")
        reach = group.stride * (g - 1)
        low, span = group.low + min(reach, 0), abs(reach) + group.high - group.low
        inside = _inside(x, offset, size, low, span, group.align)
        group.tests.append((w.assign(f"and i1 {regular}, {inside}"), w.assign(f"add i64 {start}, {offset}")))


def _anchored(x: Lowering, access: Access, chain: Chain) -> tuple[Anchor, Chain] | None:
    """The buffer of the parameter that a chain starts from, and what is added to it."""
    if access.window != "generic":
        return None
    for term, factor in chain.plus:
        anchor = anchor_of(x, term, store=access.store) if factor == 1 else None
        if anchor is not None:
            return anchor, chain.without(term)
    return None


# --- addresses -------------------------------------------------------------------------------------------------------


def address_of(x: Lowering, mem: Mem) -> Value:
    """The base register as i64, or 0 where the whole address is constant."""
    return x.read(mem.base, "i64") if isinstance(mem.base, Reg) else integer("i64", 0)


def displaced(x: Lowering, access: Access, base: Value) -> Value:
    """The address that ``base`` and the access's offset come to."""
    if not access.offset:
        return base
    address = x.w.add(base, integer("i64", access.offset))
    return x.w.binary("and", address, integer("i64", _LOW)) if access.wraps else address


def pointer_at(x: Lowering, host: str, offset: int) -> str:
    """A host address (an i64) plus an offset, as a pointer."""
    w = x.w
    at = w.assign(f"add i64 {host}, {offset}") if offset else host
    return w.assign(f"inttoptr i64 {at} to ptr")


def uniform_pointer(x: Lowering, access: Access, base: Value) -> str:
    """Check one address that all lanes share; the host pointer, or one to scratch where no lane acts."""
    w = x.w
    address = displaced(x, access, base).text
    start, size, offset = _bounds(x, access, address)
    good = _inside(x, offset, size, 0, access.span, access.span)
    host = w.assign(f"add i64 {start}, {offset}")
    fast, cold, join = w.current, w.fresh_label("cold"), w.fresh_label("join")
    bits = x.bits_of(x.exec)
    some = w.assign(f"icmp ne i{w.width} {bits}, 0") if x.guard is not None else ""
    if x.guard is not None:
        good = w.assign(f"and i1 {good}, {some}")
    w.branch(good, join, cold, likely=True)
    w.label(cold)
    if x.guard is not None:
        call, none = w.fresh_label("call"), w.fresh_label("none")
        w.branch(some, call, none)
        w.label(none)
        scratch = w.assign("ptrtoint ptr %scratch to i64")
        w.jump(join)
        w.label(call)
    lane = first_lane(w, bits)
    other = _locate(x, access, address, lane)
    after = w.current
    w.jump(join)
    w.label(join)
    arms = f"[ {host}, %{fast} ], [ {other}, %{after} ]"
    if x.guard is not None:
        arms += f", [ {scratch}, %{none} ]"
    return w.assign(f"inttoptr i64 {w.assign(f'phi i64 {arms}')} to ptr")


def _locate(x: Lowering, access: Access, address: str, lane: str) -> str:
    """One lane's checked host address, out of line; leaves the warp after a fault."""
    w = x.w
    window = "generic" if access.window == "param" else access.window
    if access.window == "param":
        address = w.assign(f"or i64 {address}, {PARAM_ID << ID_SHIFT}")
    name = require_locate(x.unit, window + (".store" if access.store else ""))
    host = w.assign(f"call i64 @{name}(ptr %ctx, i64 {address}, i64 {access.span}, i32 {x.site()}, i32 {lane})")
    w.go_on(w.assign(f"icmp ne i64 {host}, 0"))
    return host


def addresses(x: Lowering, access: Access, lanes: str, part: int) -> str:
    """A part's addresses, offset and all, as the out-of-line functions take them."""
    w, g = x.w, x.unit.group
    mine = take_part(x, lanes, "i64", part)
    if access.window == "param":
        mine = w.assign(f"or <{g} x i64> {mine}, splat (i64 {PARAM_ID << ID_SHIFT})")
    if not access.offset:
        return mine
    mine = w.assign(f"add <{g} x i64> {mine}, splat (i64 {access.offset})")
    return w.assign(f"and <{g} x i64> {mine}, splat (i64 {_LOW})") if access.wraps else mine
