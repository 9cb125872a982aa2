"""Asynchronous copies and the barriers that watch them (PTX ISA 9.7.9.25, cp.async, st.async, red.async; 9.7.13.15,
mbarrier).

A copy is done when it is issued, which is one of the orders that PTX allows; so groups are complete at once, and an
mbarrier counts its bytes as they come. All warps of a CTA, and all CTAs of a cluster, run on one thread: the state of
an mbarrier needs no atomic operation.

The state: arrivals pending in bits 0 to 19, arrivals of a phase in 20 to 39, bytes to come (two's complement) in
40 to 62, the phase's parity in 63.
"""

from __future__ import annotations

from teenycli.devices.cpu.gather import require_locate
from teenycli.devices.cpu.layout import FaultKind
from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.ops.access import Access, address_of, displaced, fold_base, wraps
from teenycli.devices.cpu.ops.atomics import atomic
from teenycli.devices.cpu.ops.lanes import each_lane
from teenycli.devices.cpu.ops.memory import load, store
from teenycli.devices.cpu.program import Inst
from teenycli.devices.cpu.registry import Mods, lowers
from teenycli.devices.cpu.value import Value, Writer, integer
from teenycli.ptx.code import Mem, Operand
from teenycli.ptx.model import TYPE_SIZES, Int

_COUNT = (1 << 20) - 1
_EXPECTED, _BYTES, _PHASE = 20, 40, 63
_BYTES_MASK = (1 << 23) - 1


def named_operands(inst: Inst) -> dict[str, Operand]:
    """Operands by the names that the form gives them; those left out are missing."""
    op = inst.op
    return {spec.name: operand for spec, operand in zip(op.specs, op.operands, strict=True) if operand is not None}


def access_at(x: Lowering, inst: Inst, mem: Operand, window: str, size: int, *, store: bool) -> tuple[Access, Mem]:
    """An access of ``size`` bytes at an address operand."""
    assert isinstance(mem, Mem)
    window, offset = fold_base(x, inst, mem, window)
    return Access(window, max(size // 8, 1), min(size, 8), offset, store, wraps=wraps(mem, window)), mem


def window_of(space: str | None) -> str:
    return "shared" if space is not None and space.startswith("shared") else "generic"


def full_address(x: Lowering, access: Access, mem: Mem) -> Value:
    return displaced(x, access, address_of(x, mem))


def located(
    x: Lowering, window: str, address: str, span: int | str, lane: str, *, store: bool = True, align: int | None = None
) -> str:
    """One lane's host address (an i64), checked; leaves the warp after a fault. ``align`` is ``span`` by default."""
    w = x.w
    name = require_locate(x.unit, window + (".store" if store else ""), run=True)
    given = f"i64 {address}, i64 {span}, i64 {align or span}, i32 {x.site()}, i32 {lane}"
    host = w.assign(f"call i64 @{name}(ptr %ctx, {given})")
    w.go_on(w.assign(f"icmp ne i64 {host}, 0"))
    return host


# --- cp.async --------------------------------------------------------------------------------------------------------


def _plain(mods: Mods) -> bool:
    return "bulk" not in mods and "cop" in mods


@lowers("cp", takes=_plain)
def _copy(x: Lowering, inst: Inst) -> None:
    """4, 8 or 16 bytes from global to shared memory; bytes past the count, or of a copy to ignore, are zero."""
    given = named_operands(inst)
    size = given["bytes"].value if isinstance(given["bytes"], Int) else 0
    source, source_mem = access_at(x, inst, given["a"], "generic", size, store=False)
    target, target_mem = access_at(x, inst, given["d"], "shared", size, store=True)
    w, guard = x.w, x.guard
    whole: Value | None = None
    count: Value | None = None
    if "ignore" in given:
        whole = w.negate(x.read(given["ignore"], "i1"))
    elif "count" in given:
        count = x.read(given["count"], "i32")
        whole = w.compare("icmp uge", count, integer("i32", size))
    if whole is None:
        store(x, target, target_mem, load(x, source, source_mem))
        return
    x.guard = w.both(guard, whole) if guard is not None else whole
    values = [w.select(whole, v, integer(v.type, 0)) for v in load(x, source, source_mem)]
    x.guard = guard
    if count is not None:
        values = _with_part(x, inst, given["a"], size, count, values)
    store(x, target, target_mem, values)


def _with_part(x: Lowering, inst: Inst, mem: Operand, size: int, count: Value, values: list[Value]) -> list[Value]:
    """``values``, with those of lanes that copy some bytes, not all and not none, read a byte at a time."""
    w, each = x.w, min(size, 8)
    some = w.both(w.compare("icmp ne", count, integer("i32", 0)), w.compare("icmp ult", count, integer("i32", size)))
    access, at = access_at(x, inst, mem, "generic", size, store=False)
    partly = w.both(x.exec, w.varying(some))
    begin, part, join = w.current, w.fresh_label("part"), w.fresh_label("joined")
    texts = [w.lanes(v) for v in values]
    address = w.lanes(full_address(x, access, at))
    lanes_of_count = w.lanes(count)
    begin = w.current
    w.branch(w.assign(f"icmp ne i{w.width} {w.bits(partly.text)}, 0"), part, join, likely=False)
    w.label(part)
    guard, x.guard = x.guard, some if x.guard is None else w.both(x.guard, some)
    pieces = each_lane(
        x, [Value("i64", address, False), Value("i32", lanes_of_count, False)], f"i{8 * size}",
        lambda lane, given: _bytes(x, access.window, lane, given, size),
    )  # fmt: skip
    x.guard = guard
    mixed = []
    for k, text in enumerate(texts):
        piece = w.binary("lshr", pieces, integer(pieces.type, 8 * each * k)) if k else pieces
        mixed.append(w.select(some, w.resize(piece, f"i{8 * each}"), Value(f"i{8 * each}", text, False)).text)
    end = w.current
    w.jump(join)
    w.label(join)
    kind = w.vector(f"i{8 * each}")
    return [
        Value(f"i{8 * each}", w.assign(f"phi {kind} [ {a}, %{begin} ], [ {b}, %{end} ]"), False)
        for a, b in zip(texts, mixed, strict=True)
    ]


def _bytes(x: Lowering, window: str, lane: str, given: list[str], size: int) -> str:
    """One lane's first bytes, as an integer whose rest is zero."""
    w, kind = x.w, f"i{8 * size}"
    address, count = given

    def byte(names: list[str]) -> list[str]:
        k, sofar = names
        place = w.assign(f"add i64 {address}, {w.assign(f'zext i32 {k} to i64')}")
        host = located(x, window, place, 1, lane, store=False)
        found = w.assign(f"load i8, ptr {w.assign(f'inttoptr i64 {host} to ptr')}, align 1")
        wide, shift = w.assign(f"zext i8 {found} to {kind}"), w.assign(f"shl i32 {k}, 3")
        if size > 4:
            shift = w.assign(f"zext i32 {shift} to {kind}")
        more = w.assign(f"or {kind} {sofar}, {w.assign(f'shl {kind} {wide}, {shift}')}")
        return [w.assign(f"add i32 {k}, 1"), more]

    _, taken = w.loop([("i32", "0"), (kind, "0")], lambda names: w.assign(f"icmp ult i32 {names[0]}, {count}"), byte)
    return taken


@lowers("cp", takes=lambda mods: bool({"commit_group", "wait_group", "wait_all"} & mods.keys()))
def _group(*_: object) -> None:
    """Every copy is complete when its group is closed."""


@lowers("cp", takes=lambda mods: "mbarrier" in mods)
def _copies_arrive(x: Lowering, inst: Inst) -> None:
    """The thread's copies are complete, so it arrives now; without ``.noinc`` that was not among those pending."""
    if "noinc" in inst.op.mods:
        _change(x, inst, named_operands(inst)["a"], integer("i64", 1), arrive=True)


# --- mbarrier: arithmetic on the state -------------------------------------------------------------------------------


def _field(w: Writer, state: str, shift: int, mask: int) -> str:
    moved = w.assign(f"lshr i64 {state}, {shift}") if shift else state
    return w.assign(f"and i64 {moved}, {mask}")


def _completed(w: Writer, state: str) -> str:
    """The state, in the next phase if nothing is pending."""
    pending = _field(w, state, 0, _COUNT)
    coming = _field(w, state, _BYTES, _BYTES_MASK)
    left = w.assign(f"or i64 {pending}, {coming}")
    over = w.assign(f"icmp eq i64 {left}, 0")
    expected = _field(w, state, _EXPECTED, _COUNT)
    fresh = w.assign(f"or i64 {state}, {expected}")
    flipped = w.assign(f"xor i64 {fresh}, {1 << _PHASE}")
    return w.assign(f"select i1 {over}, i64 {flipped}, i64 {state}")


def _require(x: Lowering, good: str, lane: str, what: str, kind: FaultKind = FaultKind.MBARRIER) -> None:
    """A fault, of an mbarrier if not said otherwise, unless ``good``; ``what`` (an i64) is what a message names."""
    w = x.w
    fine, bad = w.fresh_label("fine"), w.fresh_label("bad")
    w.branch(good, fine, bad, likely=True)
    w.label(bad)
    x.fault(kind, lane, what)
    w.label(fine)


def _change(
    x: Lowering,
    inst: Inst,
    mem: Operand,
    count: Value,
    *,
    arrive: bool = False,
    drop: bool = False,
    coming: Value | None = None,
    far: Value | None = None,
) -> Value:
    """Change the state lane by lane: ``count`` arrivals, ``coming`` more bytes to come; the state before, by lane.

    ``far`` is added to the address.
    """
    w = x.w
    # The mbarrier of a bulk copy is in shared memory, whatever spaces it copies between (PTX ISA, "cp.async.bulk").
    window = "shared" if inst.op.opcode == "cp" and "bulk" in inst.op.mods else window_of(inst.op.mods.get("space"))
    access, at = access_at(x, inst, mem, window, 8, store=True)

    def change(lane: str, given: list[str]) -> str:
        address, arrivals, more = given
        host = located(x, access.window, address, 8, lane)
        place = w.assign(f"inttoptr i64 {host} to ptr")
        old = w.assign(f"load i64, ptr {place}, align 8")
        moved = w.assign(f"shl i64 {more}, {_BYTES}")
        kept = w.assign(f"and i64 {old}, {~(_BYTES_MASK << _BYTES)}")
        sum_ = w.assign(f"add i64 {w.assign(f'and i64 {old}, {_BYTES_MASK << _BYTES}')}, {moved}")
        state = w.assign(f"or i64 {kept}, {w.assign(f'and i64 {sum_}, {_BYTES_MASK << _BYTES}')}")
        if arrive:
            pending = _field(w, old, 0, _COUNT)
            _require(x, w.assign(f"icmp ule i64 {arrivals}, {pending}"), lane, arrivals)
            state = w.assign(f"sub i64 {state}, {arrivals}")
            if drop:
                state = w.assign(f"sub i64 {state}, {w.assign(f'shl i64 {arrivals}, {_EXPECTED}')}")
        if arrive or coming is not None:
            state = _completed(w, state)
        w.line(f"store i64 {state}, ptr {place}, align 8")
        return old

    more = coming if coming is not None else integer("i64", 0)
    address = full_address(x, access, at)
    return each_lane(x, [w.add(address, far) if far is not None else address, count, more], "i64", change)


def complete_bytes(x: Lowering, inst: Inst, mem: Operand, count: Value, far: Value | None = None) -> None:
    """Count ``count`` bytes (an i64) as come at the mbarrier, ``far`` bytes from where ``mem`` points."""
    _change(x, inst, mem, integer("i64", 0), coming=x.w.sub(integer("i64", 0), count), far=far)


# --- mbarrier: instructions ------------------------------------------------------------------------------------------


@lowers("mbarrier", takes=lambda mods: "init" in mods or "inval" in mods)
def _init(x: Lowering, inst: Inst) -> None:
    w, given = x.w, named_operands(inst)
    access, at = access_at(x, inst, given["a"], window_of(inst.op.mods.get("space")), 8, store=True)
    count = w.resize(x.read(given["count"], "i32"), "i64") if "count" in given else integer("i64", 0)

    def init(lane: str, values: list[str]) -> str:
        address, number = values
        host = located(x, access.window, address, 8, lane)
        if "init" in inst.op.mods:
            below = w.assign(f"sub i64 {number}, 1")
            _require(x, w.assign(f"icmp ult i64 {below}, {_COUNT}"), lane, number)
        state = w.assign(f"or i64 {number}, {w.assign(f'shl i64 {number}, {_EXPECTED}')}")
        w.line(f"store i64 {state}, ptr {w.assign(f'inttoptr i64 {host} to ptr')}, align 8")
        return state

    each_lane(x, [full_address(x, access, at), count], "i64", init)


@lowers("mbarrier", takes=lambda mods: "arrive" in mods or "arrive_drop" in mods)
def _arrive(x: Lowering, inst: Inst) -> None:
    mods, given = inst.op.mods, named_operands(inst)
    number = x.w.resize(x.read(given["count"], "i32"), "i64") if "count" in given else integer("i64", 1)
    coming = number if "expect_tx" in mods else None
    count = integer("i64", 1) if "expect_tx" in mods else number
    state = _change(x, inst, given["a"], count, arrive=True, drop="arrive_drop" in mods, coming=coming)
    x.write(given.get("d"), state)


@lowers("mbarrier", takes=lambda mods: not {"arrive", "arrive_drop"} & mods.keys() and bool(
    {"expect_tx", "complete_tx"} & mods.keys()))  # fmt: skip
def _bytes_to_come(x: Lowering, inst: Inst) -> None:
    given = named_operands(inst)
    count = x.w.resize(x.read(given["count"], "i32"), "i64")
    if "complete_tx" in inst.op.mods:
        complete_bytes(x, inst, given["a"], count)
    else:
        _change(x, inst, given["a"], integer("i64", 0), coming=count)


@lowers("mbarrier", takes=lambda mods: "test_wait" in mods or "try_wait" in mods)
def _wait(x: Lowering, inst: Inst) -> None:
    """Whether the phase is over that a state, or a parity, belongs to. A wait that is not over gives way in its
    loop (see ``flow``)."""
    w, given = x.w, named_operands(inst)
    access, at = access_at(x, inst, given["a"], window_of(inst.op.mods.get("space")), 8, store=False)
    if "parity" in inst.op.mods:
        phase = w.both(x.read(given["parity"], "i32"), integer("i32", 1))
        phase = w.resize(phase, "i64")
    else:
        phase = w.binary("lshr", x.read(given["state"], "i64"), integer("i64", _PHASE))

    def test(lane: str, values: list[str]) -> str:
        address, asked = values
        host = located(x, access.window, address, 8, lane, store=False)
        state = w.assign(f"load volatile i64, ptr {w.assign(f'inttoptr i64 {host} to ptr')}, align 8")
        return w.assign(f"icmp ne i64 {w.assign(f'lshr i64 {state}, {_PHASE}')}, {asked}")

    x.write(given["p"], each_lane(x, [full_address(x, access, at), phase], "i1", test))


@lowers("mbarrier", takes=lambda mods: "pending_count" in mods)
def _pending(x: Lowering, inst: Inst) -> None:
    target, state = inst.op.operands
    pending = x.w.both(x.read(state, "i64"), integer("i64", _COUNT))
    x.write(target, x.w.resize(pending, "i32"))


# --- copies of many bytes, stores that count -------------------------------------------------------------------------


def _runs(mods: Mods) -> bool:
    """Copies of a run of bytes between two windows; neither of tiles, nor to many CTAs, under a byte mask, or added."""
    return (
        "bulk" in mods and "dst" in mods and not {"tensor", "multicast", "cp_mask", "prefetch", "reduce"} & mods.keys()
    )


@lowers("cp", takes=_runs)
def _bulk(x: Lowering, inst: Inst) -> None:
    """Size and both addresses are multiples of 16 (PTX ISA, "cp.async.bulk")."""
    w, mods, given = x.w, inst.op.mods, named_operands(inst)
    source, source_mem = access_at(x, inst, given["a"], window_of(mods["src"]), 16, store=False)
    target, target_mem = access_at(x, inst, given["d"], window_of(mods["dst"]), 16, store=True)
    size = w.resize(x.read(given["size"], "i32"), "i64")
    x.unit.declare("llvm.memmove.p0.p0.i64", "void", ["ptr", "ptr", "i64", "i1"])

    def copy(lane: str, values: list[str]) -> str:
        to, start, count = values
        whole = w.assign(f"icmp eq i64 {w.assign(f'and i64 {count}, 15')}, 0")
        _require(x, whole, lane, count, FaultKind.COPY)
        some, done = w.fresh_label("some"), w.fresh_label("copied")
        w.branch(w.assign(f"icmp ne i64 {count}, 0"), some, done)
        w.label(some)
        hosts = []
        for access, address, writes in ((target, to, True), (source, start, False)):
            host = located(x, access.window, address, count, lane, store=writes, align=16)
            hosts.append(w.assign(f"inttoptr i64 {host} to ptr"))
        w.line(f"call void @llvm.memmove.p0.p0.i64(ptr {hosts[0]}, ptr {hosts[1]}, i64 {count}, i1 false)")
        w.jump(done)
        w.label(done)
        return "0"

    each_lane(x, [full_address(x, target, target_mem), full_address(x, source, source_mem), size], "i64", copy)
    if "mbar" in given:
        complete_bytes(x, inst, given["mbar"], size)


@lowers("st", takes=lambda mods: "async" in mods and "completion" in mods)
def _store_async(x: Lowering, inst: Inst) -> None:
    given, mods = named_operands(inst), inst.op.mods
    values = [x.read(operand, f"i{8 * TYPE_SIZES[mods['type']]}") for operand in x.elements(given["b"])]
    size = TYPE_SIZES[mods["type"]]
    # Without a space both addresses are generic (PTX ISA, "st.async").
    access, mem = access_at(x, inst, given["a"], window_of(mods.get("space")), size, store=True)
    access.size, access.count = size, len(values)
    store(x, access, mem, values)
    complete_bytes(x, inst, given["mbar"], integer("i64", size * len(values)))


@lowers("red", takes=lambda mods: "async" in mods and "completion" in mods)
def _reduce_async(x: Lowering, inst: Inst) -> None:
    atomic(x, inst)
    complete_bytes(x, inst, named_operands(inst)["mbar"], integer("i64", TYPE_SIZES[inst.op.mods["type"]]))
