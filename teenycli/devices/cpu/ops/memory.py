"""Loads and stores (PTX ISA 9.7.9: ld, ldu, st).

An access is checked inline for the form that the stride guess suggests (lanes in a row, or all alike) and goes out
of line for any other. Accesses of a block through one register share one test.
"""

from __future__ import annotations

from msgspec.structs import replace

from teenycli.devices.cpu.gather import require_gather, require_scatter
from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.ops.access import (
    Access,
    Group,
    access_of,
    address_of,
    addresses,
    pointer_at,
    space_of,
    test_group,
    uniform_pointer,
)
from teenycli.devices.cpu.ops.parts import join_parts, part_bits, take_part
from teenycli.devices.cpu.program import Inst
from teenycli.devices.cpu.registry import Mods, lowers
from teenycli.devices.cpu.value import Value, integer
from teenycli.errors import TeenyError
from teenycli.exits import Exit
from teenycli.ptx.code import Mem

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
        test_group(x, group, access, base)
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
        return _load_same(x, access, pointer_at(x, host, access.offset))
    if group.stride == access.span:
        return _load_row(x, access, pointer_at(x, host, access.offset))
    if access.count == 1 and group.stride == group.high - group.low <= 8 * access.size:
        return [_load_comb(x, access, group, pointer_at(x, host, group.low))]
    return _load_strided(x, access, group, pointer_at(x, host, access.offset))


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


def gather(x: Lowering, access: Access, places: Value) -> list[Value]:
    """The elements at each acting lane's own address, as integers; ``access`` has no offset of its own."""
    w, kind = x.w, f"i{8 * access.size}"
    plain = replace(access, offset=0)
    lanes, bits = w.lanes(places), x.bits_of(x.exec)
    parts = [_gather(x, plain, lanes, part_bits(x, bits, part), part) for part in range(w.width // x.unit.group)]
    return [Value(kind, join_parts(x, list(pieces), kind), False) for pieces in zip(*parts, strict=True)]


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
        test_group(x, group, access, base)
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
        _store_row(x, access, pointer_at(x, host, access.offset), pieces, mask)
    else:
        _store_strided(x, access, group, pointer_at(x, host, access.offset), pieces, mask)
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


def scatter(x: Lowering, access: Access, places: Value, values: list[Value]) -> None:
    """Store each acting lane's elements at its own address; ``access`` has no offset of its own."""
    w, kind = x.w, f"i{8 * access.size}"
    plain = replace(access, offset=0)
    lanes, bits = w.lanes(places), x.bits_of(x.exec)
    texts = [w.lanes(value) for value in values]
    for part in range(w.width // x.unit.group):
        pieces = [take_part(x, text, kind, part) for text in texts]
        _scatter(x, plain, lanes, pieces, part_bits(x, bits, part), part)
