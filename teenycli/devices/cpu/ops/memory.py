"""Loads and stores (PTX ISA 9.7.9: ld, ldu, st).

An access is checked inline for the form that the stride guess suggests (lanes in a row, or all alike) and goes out
of line for any other. Accesses of a block through one register share one test.
"""

from __future__ import annotations

from ctypes import sizeof
from dataclasses import dataclass, field, replace

from teenycli.devices.cpu.gather import require_gather, require_locate, require_scatter
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
from teenycli.devices.cpu.ops.parts import join_parts, part_bits, take_part
from teenycli.devices.cpu.program import Block, Handover, Inst, cells_written
from teenycli.devices.cpu.registry import Mods, lowers
from teenycli.devices.cpu.value import Value, integer
from teenycli.errors import TeenyError
from teenycli.exits import Exit
from teenycli.ptx.code import Mem, Op, Reg
from teenycli.ptx.model import Variable, type_width

_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_ENTRY_SIZE = sizeof(Entry)
_LOW = 2**32 - 1


@dataclass(slots=True)
class Access:
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


@dataclass(slots=True)
class Group:
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


def _test_group(x: Lowering, group: Group, access: Access, base: Value) -> None:
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


def _pointer(x: Lowering, host: str, offset: int) -> str:
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
    fine = w.fresh_label("fine")
    w.branch(w.assign(f"icmp ne i64 {host}, 0"), fine, "dead", likely=True)
    w.label(fine)
    return host


# --- loads -----------------------------------------------------------------------------------------------------------


@lowers("multimem", takes=lambda mods: "ld_reduce" in mods)
@lowers("ld", "ldu")
def _ld(x: Lowering, inst: Inst) -> None:
    """A multimem address stands for one place on each device of a team: here a team of one, with nothing to reduce."""
    mem = inst.op.operands[1]
    assert isinstance(mem, Mem)
    access = access_of(x, inst, mem)
    values = load(x, access, mem)
    if access.order == "acquire":
        x.w.line("fence acquire")
    signed = inst.op.mods["type"][0] == "s"
    for target, value in zip(x.elements(inst.op.operands[0]), values, strict=True):
        x.write(target, value, signed=signed)


def load(x: Lowering, access: Access, mem: Mem) -> list[Value]:
    """The elements that each lane loads, as integers."""
    if access.size == 16:
        halves = replace(access, count=access.count * 2, size=8)
        parts = load(x, halves, mem)
        return [_wide(x, parts[k], parts[k + 1]) for k in range(0, len(parts), 2)]
    base = address_of(x, mem)
    if access.window == "param" and base.text == "0":
        return _load_param(x, access)
    if base.uniform and (access.window in ("shared", "param") or _is_named_space(x)):
        return _load_uniform(x, access, base)
    return _load_lanes(x, access, base)


def _is_named_space(x: Lowering) -> bool:
    """Whether the instruction names a space in which one address means one place to all lanes."""
    assert x.inst is not None
    return space_of(x.inst.op.mods) in ("global", "const", "shared")


def _wide(x: Lowering, low: Value, high: Value) -> Value:
    w = x.w
    upper = w.binary("shl", w.cast("zext", high, "i128"), integer("i128", 64))
    return w.either(w.cast("zext", low, "i128"), upper)


def _load_param(x: Lowering, access: Access) -> list[Value]:
    """A parameter at a fixed offset: checked now, read from the parameter buffer."""
    if access.offset < 0 or access.offset + access.span > x.program.param_bytes:
        raise TeenyError(
            "out-of-bounds",
            f"{access.span} bytes at offset {access.offset} of the parameters, which take {x.program.param_bytes}",
            where=x.program.where(x.inst.op if x.inst else None),
            exit=Exit.FAILED,
        )
    w = x.w
    params, kind = x.field("ctx", "params", "ptr"), f"i{8 * access.size}"
    values = []
    for k in range(access.count):
        place = w.assign(f"getelementptr i8, ptr {params}, i64 {access.offset + k * access.size}")
        values.append(Value(kind, w.assign(f"load {kind}, ptr {place}, align 1, !invariant.load !2"), True))
    return values


def _load_uniform(x: Lowering, access: Access, base: Value) -> list[Value]:
    w, kind = x.w, f"i{8 * access.size}"
    pointer = uniform_pointer(x, access, base)
    values = []
    for k in range(access.count):
        place = w.assign(f"getelementptr i8, ptr {pointer}, i64 {k * access.size}") if k else pointer
        values.append(Value(kind, w.assign(f"load{_volatile(access)} {kind}, ptr {place}, align {access.size}"), True))
    return values


def _volatile(access: Access) -> str:
    return " volatile" if access.order else ""


def _load_lanes(x: Lowering, access: Access, base: Value) -> list[Value]:
    w, g = x.w, x.unit.group
    group = x.memory.get(x.site())
    if group is not None and not group.tests:
        _test_group(x, group, access, base)
    kind = f"i{8 * access.size}"
    lanes, bits = w.lanes(base), x.bits_of(x.exec)
    pieces: list[list[str]] = [[] for _ in range(access.count)]
    for part in range(w.width // g):
        mine = part_bits(x, bits, part)
        found = _gather(x, access, lanes, mine, part) if group is None else _load_part(x, access, group, mine, part)
        for piece, text in zip(pieces, found, strict=True):
            piece.append(text)
    return [Value(kind, join_parts(x, piece, kind), False) for piece in pieces]


def _load_part(x: Lowering, access: Access, group: Group, mask: str, part: int) -> list[str]:
    """Inline where the group's test holds, out of line where not."""
    w, g = x.w, x.unit.group
    assert group.chain is not None
    kind = f"<{g} x i{8 * access.size}>"
    ok, host = group.tests[part]
    fast, cold, join = w.fresh_label("fast"), w.fresh_label("cold"), w.fresh_label("join")
    w.branch(ok, fast, cold, likely=True)
    w.label(fast)
    quick = _load_regular(x, access, group, host)
    fast_end = w.current
    w.jump(join)
    w.label(cold)
    slow = _gather(x, access, group.chain.lanes(x), mask, part)
    cold_end = w.current
    w.jump(join)
    w.label(join)
    return [
        w.assign(f"phi {kind} [ {a}, %{fast_end} ], [ {b}, %{cold_end} ]") for a, b in zip(quick, slow, strict=True)
    ]


def _load_regular(x: Lowering, access: Access, group: Group, host: str) -> list[str]:
    """The elements of lanes that lie as the group guessed, all within one buffer."""
    if group.stride == 0:
        return _load_same(x, access, _pointer(x, host, access.offset))
    if group.stride == access.span:
        return _load_row(x, access, _pointer(x, host, access.offset))
    if access.count == 1 and group.stride == group.high - group.low <= 8 * access.size:
        return [_load_comb(x, access, group, _pointer(x, host, group.low))]
    return _load_strided(x, access, group, _pointer(x, host, access.offset))


def _load_comb(x: Lowering, access: Access, group: Group, pointer: str) -> str:
    """Every n-th element of a row that lies in the buffer as a whole: loaded in one piece, picked from."""
    w, g, kind = x.w, x.unit.group, f"i{8 * access.size}"
    n = group.stride // access.size
    first = (access.offset - group.low) // access.size
    whole = w.assign(f"load{_volatile(access)} <{g * n} x {kind}>, ptr {pointer}, align {access.size}")
    pick = ", ".join(f"i32 {lane * n + first}" for lane in range(g))
    return w.assign(f"shufflevector <{g * n} x {kind}> {whole}, <{g * n} x {kind}> poison, <{g} x i32> <{pick}>")


def _strided_pointers(x: Lowering, group: Group, pointer: str, skip: int) -> str:
    steps = ", ".join(f"i64 {lane * group.stride + skip}" for lane in range(x.unit.group))
    return x.w.assign(f"getelementptr i8, ptr {pointer}, <{x.unit.group} x i64> <{steps}>")


def _load_strided(x: Lowering, access: Access, group: Group, pointer: str) -> list[str]:
    w, g, kind = x.w, x.unit.group, f"i{8 * access.size}"
    vector, name = f"<{g} x {kind}>", f"llvm.masked.gather.v{g}{kind}.v{g}p0"
    x.unit.declare(name, vector, [f"<{g} x ptr>", f"<{g} x i1>", vector])
    found = []
    for k in range(access.count):
        places = _strided_pointers(x, group, pointer, k * access.size)
        given = f"<{g} x ptr> align {access.size} {places}, <{g} x i1> splat (i1 true), {vector} poison"
        found.append(w.assign(f"call {vector} @{name}({given})"))
    return found


def _load_row(x: Lowering, access: Access, pointer: str) -> list[str]:
    """Lanes in a row: one vector load, taken apart for several elements a lane."""
    w, g, n = x.w, x.unit.group, access.count
    kind = f"i{8 * access.size}"
    whole = w.assign(f"load{_volatile(access)} <{g * n} x {kind}>, ptr {pointer}, align {access.size}")
    if n == 1:
        return [whole]
    picks = [", ".join(f"i32 {lane * n + k}" for lane in range(g)) for k in range(n)]
    return [
        w.assign(f"shufflevector <{g * n} x {kind}> {whole}, <{g * n} x {kind}> poison, <{g} x i32> <{pick}>")
        for pick in picks
    ]


def _load_same(x: Lowering, access: Access, pointer: str) -> list[str]:
    w, g, kind = x.w, x.unit.group, f"i{8 * access.size}"
    found = []
    for k in range(access.count):
        place = w.assign(f"getelementptr i8, ptr {pointer}, i64 {k * access.size}") if k else pointer
        one = w.assign(f"load{_volatile(access)} {kind}, ptr {place}, align {access.size}")
        found.append(w.splat(kind, one, g))
    return found


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


def _gather(x: Lowering, access: Access, lanes: str, mask: str, part: int) -> list[str]:
    w, g = x.w, x.unit.group
    window = "generic" if access.window == "param" else access.window
    name = require_gather(x.unit, window, 8 * access.size)
    places = addresses(x, access, lanes, part)
    given = f"ptr %ctx, <{g} x i64> {places}, i{g} {mask}, i32 {x.site()}, i32 {part * g}, i64 {access.span}"
    found = [
        w.assign(f"call <{g} x i{8 * access.size}> @{name}({given}, i64 {k * access.size})")
        for k in range(access.count)
    ]
    x.check_dead()
    return found


# --- stores ----------------------------------------------------------------------------------------------------------


def _is_plain_store(mods: Mods) -> bool:
    """``st.async`` without an mbarrier may be done at once; with one, it is no store alone."""
    return "bulk" not in mods and "completion" not in mods


@lowers("multimem", takes=lambda mods: "st" in mods)
@lowers("st", takes=_is_plain_store)
def _st(x: Lowering, inst: Inst) -> None:
    mem = inst.op.operands[0]
    assert isinstance(mem, Mem)
    access = access_of(x, inst, mem)
    kind = f"i{8 * access.size}"
    values = [x.read(operand, kind) for operand in x.elements(inst.op.operands[1])]
    if access.order == "release":
        x.w.line("fence release")
    store(x, access, mem, values)


def store(x: Lowering, access: Access, mem: Mem, values: list[Value]) -> None:
    """Store an element or several of each acting lane."""
    w = x.w
    if access.size == 16:
        halves = replace(access, count=access.count * 2, size=8)
        parts = [
            w.cast("trunc", w.binary("lshr", v, integer("i128", 64 * k)) if k else v, "i64")
            for v in values
            for k in (0, 1)
        ]
        store(x, halves, mem, parts)
        return
    base = address_of(x, mem)
    if base.uniform and (access.window == "shared" or (access.window == "generic" and _is_named_space(x))):
        _store_uniform(x, access, base, values)
    else:
        _store_lanes(x, access, base, values)


def _store_uniform(x: Lowering, access: Access, base: Value, values: list[Value]) -> None:
    """All lanes to one place: the last acting one's value stays."""
    w, kind = x.w, f"i{8 * access.size}"
    pointer = uniform_pointer(x, access, base)
    lane = ""
    for k, value in enumerate(values):
        text = value.text
        if not value.uniform:
            if not lane:
                lane = _last_lane(x, x.bits_of(x.exec))
            text = w.assign(f"extractelement {w.vector(kind)} {value.text}, i32 {lane}")
        place = w.assign(f"getelementptr i8, ptr {pointer}, i64 {k * access.size}") if k else pointer
        w.line(f"store{_volatile(access)} {kind} {text}, ptr {place}, align {access.size}")


def _last_lane(x: Lowering, bits: str) -> str:
    """The highest acting lane; 0 where there is none (the store then goes to scratch)."""
    w = x.w
    x.unit.declare(f"llvm.ctlz.i{w.width}", f"i{w.width}", [f"i{w.width}", "i1"])
    some = w.assign(f"or i{w.width} {bits}, 1")
    zeros = w.assign(f"call i{w.width} @llvm.ctlz.i{w.width}(i{w.width} {some}, i1 true)")
    lane = w.assign(f"sub i{w.width} {w.width - 1}, {zeros}")
    return lane if w.width == 32 else w.assign(f"zext i{w.width} {lane} to i32")


def _store_lanes(x: Lowering, access: Access, base: Value, values: list[Value]) -> None:
    w, g = x.w, x.unit.group
    group = x.memory.get(x.site())
    if group is not None and not group.stride:
        group = None  # several lanes to one place: out of line, in lane order
    if group is not None and not group.tests:
        _test_group(x, group, access, base)
    kind = f"i{8 * access.size}"
    lanes, bits = w.lanes(base), x.bits_of(x.exec)
    texts = [w.lanes(value) for value in values]
    for part in range(w.width // g):
        mine = part_bits(x, bits, part)
        pieces = [take_part(x, text, kind, part) for text in texts]
        if group is None:
            _scatter(x, access, lanes, pieces, mine, part)
        else:
            _store_part(x, access, group, pieces, mine, part)


def _store_part(x: Lowering, access: Access, group: Group, pieces: list[str], mask: str, part: int) -> None:
    w, g = x.w, x.unit.group
    assert group.chain is not None
    ok, host = group.tests[part]
    if not x.unit.masked:
        full = w.assign(f"icmp eq i{g} {mask}, -1") if group.stride == access.span else "false"
        ok = w.assign(f"and i1 {ok}, {full}")
    fast, cold, join = w.fresh_label("fast"), w.fresh_label("cold"), w.fresh_label("join")
    w.branch(ok, fast, cold, likely=True)
    w.label(fast)
    if group.stride == access.span:
        _store_row(x, access, _pointer(x, host, access.offset), pieces, mask)
    else:
        _store_strided(x, access, group, _pointer(x, host, access.offset), pieces, mask)
    w.jump(join)
    w.label(cold)
    _scatter(x, access, group.chain.lanes(x), pieces, mask, part)
    w.jump(join)
    w.label(join)


def _store_strided(x: Lowering, access: Access, group: Group, pointer: str, pieces: list[str], mask: str) -> None:
    w, g, kind = x.w, x.unit.group, f"i{8 * access.size}"
    vector, name = f"<{g} x {kind}>", f"llvm.masked.scatter.v{g}{kind}.v{g}p0"
    x.unit.declare(name, "void", [vector, f"<{g} x ptr>", f"<{g} x i1>"])
    lanes = w.assign(f"bitcast i{g} {mask} to <{g} x i1>")
    for k, piece in enumerate(pieces):
        places = _strided_pointers(x, group, pointer, k * access.size)
        w.line(f"call void @{name}({vector} {piece}, <{g} x ptr> align {access.size} {places}, <{g} x i1> {lanes})")


def _store_row(x: Lowering, access: Access, pointer: str, pieces: list[str], mask: str) -> None:
    """Lanes in a row: their elements put together, one vector store under the mask."""
    w, g, n, kind = x.w, x.unit.group, access.count, f"i{8 * access.size}"
    whole, width = pieces[0], g
    if n > 1:
        joined = join_parts(x, pieces, kind)
        order = ", ".join(f"i32 {k * g + lane}" for lane in range(g) for k in range(n))
        width = g * n
        whole = w.assign(
            f"shufflevector <{width} x {kind}> {joined}, <{width} x {kind}> poison, <{width} x i32> <{order}>"
        )
    if not x.unit.masked:
        w.line(f"store{_volatile(access)} <{width} x {kind}> {whole}, ptr {pointer}, align {access.size}")
        return
    lanes = w.assign(f"bitcast i{g} {mask} to <{g} x i1>")
    if n > 1:
        order = ", ".join(f"i32 {lane}" for lane in range(g) for _ in range(n))
        lanes = w.assign(f"shufflevector <{g} x i1> {lanes}, <{g} x i1> poison, <{width} x i32> <{order}>")
    name = f"llvm.masked.store.v{width}{kind}.p0"
    x.unit.declare(name, "void", [f"<{width} x {kind}>", "ptr", f"<{width} x i1>"])
    w.line(f"call void @{name}(<{width} x {kind}> {whole}, ptr align {access.size} {pointer}, <{width} x i1> {lanes})")


def _scatter(x: Lowering, access: Access, lanes: str, pieces: list[str], mask: str, part: int) -> None:
    w, g, kind = x.w, x.unit.group, f"i{8 * access.size}"
    window = "generic" if access.window == "param" else access.window
    name = require_scatter(x.unit, window, 8 * access.size)
    places = addresses(x, access, lanes, part)
    for k, piece in enumerate(pieces):
        w.line(
            f"call void @{name}(ptr %ctx, <{g} x i64> {places}, <{g} x {kind}> {piece}, i{g} {mask}, "
            f"i32 {x.site()}, i32 {part * g}, i64 {access.span}, i64 {k * access.size})"
        )
    x.check_dead()
