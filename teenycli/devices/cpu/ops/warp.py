"""Warp-wide operations (PTX ISA 9.7.13): shfl, vote, match, redux, activemask, elect. A vector is a whole warp here."""

from __future__ import annotations

from teenycli.devices.cpu import native
from teenycli.devices.cpu.layout import FaultKind
from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.program import Inst
from teenycli.devices.cpu.registry import lowers
from teenycli.devices.cpu.value import Value, floating, integer, lane_constants
from teenycli.ptx.code import Operand, Pair
from teenycli.ptx.model import Int
from teenycli.ptx.warps import MASKED, WHOLE

#: A vector must hold a warp of 32 lanes where one of these occurs.
WARP_WIDE = MASKED | WHOLE | {"activemask", "elect"}
_LANES = 32


def _lane_numbers(x: Lowering) -> Value:
    return Value("i32", x.w.iota(), False)


def _members(x: Lowering, inst: Inst) -> Value:
    """The member mask as given, or all active lanes for the old forms without one."""
    if "sync" not in inst.op.mods:
        return integer("i32", -1)
    members = x.read(inst.op.operands[-1], "i32")
    check_members(x, members)
    return members


def check_members(x: Lowering, members: Value) -> None:
    """A fault unless each acting lane is a member of its mask (PTX ISA 9.7.13: else the behaviour is undefined).

    A mask may name lanes that have exited: only those that have not are waited for.
    """
    w = x.w
    if members.text == "-1":
        return
    acting = Value("i32", x.bits_of(x.exec), True)
    if members.uniform:
        named = members
    else:
        mine = w.binary("lshr", members, _lane_numbers(x))
        named = Value("i32", x.bits_of(w.cast("trunc", mine, "i1")), True)
    strangers = w.both(acting, w.differ(named, integer("i32", -1)))
    bad, fine = w.fresh_label("strangers"), w.fresh_label("members")
    w.branch(w.compare("icmp eq", strangers, integer("i32", 0)).text, fine, bad, likely=True)
    w.label(bad)
    lane = native.first_lane(w, strangers.text)
    mask = w.assign(f"extractelement {w.vector('i32')} {w.lanes(members)}, i32 {lane}")
    x.fault(FaultKind.MEMBER_MASK, lane, w.assign(f"zext i32 {mask} to i64"))
    w.label(fine)


def _permuted(x: Lowering, value: Value, source: Value) -> Value:
    """Lane k of the result is lane ``source[k]`` of the value."""
    w = x.w
    if value.uniform:
        return value
    name = f"teeny.permute.{value.type}"
    if name not in x.unit.helpers:
        kind, lanes = w.vector(value.type), w.vector("i32")
        gather = f"llvm.masked.gather.v{w.width}{value.type}.v{w.width}p0"
        pointers, all_lanes = f"<{w.width} x ptr> align {value.bits // 8} %ptrs", f"<{w.width} x i1> splat (i1 true)"
        x.unit.helpers[name] = f"""
define internal {kind} @{name}({kind} %v, {lanes} %from) alwaysinline #0 {{
  %room = alloca {kind}, align 64
  store {kind} %v, ptr %room, align 64
  %wide = and {lanes} %from, splat (i32 {_LANES - 1})
  %ptrs = getelementptr {value.type}, ptr %room, {lanes} %wide
  %r = call {kind} @{gather}({pointers}, {all_lanes}, {kind} poison)
  ret {kind} %r
}}
"""
        x.unit.declare(gather, kind, [f"<{w.width} x ptr>", f"<{w.width} x i1>", kind])
    text = w.assign(
        f"call {w.vector(value.type)} @{name}({w.vector(value.type)} {value.text}, {w.vector('i32')} {w.lanes(source)})"
    )
    return Value(value.type, text, False)


def _fixed_permutation(x: Lowering, value: Value, lanes: list[int]) -> Value:
    w = x.w
    kind = w.vector(value.type)
    order = ", ".join(f"i32 {k}" for k in lanes)
    text = w.assign(f"shufflevector {kind} {value.text}, {kind} poison, <{w.width} x i32> <{order}>")
    return Value(value.type, text, False)


@lowers("shfl")
def _shfl(x: Lowering, inst: Inst) -> None:
    """Each lane reads another's value; a source out of its segment leaves the lane its own (PTX ISA, "shfl.sync")."""
    _members(x, inst)
    target = inst.op.operands[0]
    value = x.read(inst.op.operands[1], "i32")
    mode = inst.op.mods["mode"]
    fixed = _constant_sources(mode, inst.op.operands[2], inst.op.operands[3])
    if fixed is not None:
        lanes, inside = fixed
        result = value if value.uniform else _fixed_permutation(x, value, lanes)
        valid = lane_constants("i1", inside)
    else:
        lane, valid = _sources(x, mode, x.read(inst.op.operands[2], "i32"), x.read(inst.op.operands[3], "i32"))
        result = _permuted(x, value, lane)
    if isinstance(target, Pair):
        x.write(target.first, result)
        x.write(target.second, valid)
    else:
        x.write(target, result)


def _constant_sources(mode: str, b: Operand | None, c: Operand | None) -> tuple[list[int], list[bool]] | None:
    """Source lane and validity of every lane, where operands are constants."""
    if not isinstance(b, Int) or not isinstance(c, Int):
        return None
    delta, clamp, segment = b.value & 31, c.value & 31, c.value >> 8 & 31
    lanes, inside = [], []
    for lane in range(_LANES):
        low, high = lane & segment, lane & segment | clamp & ~segment & 31
        source, ok = {
            "up": (lane - delta, lane - delta >= high),
            "down": (lane + delta, lane + delta <= high),
            "bfly": (lane ^ delta, lane ^ delta <= high),
            "idx": (low | delta & ~segment & 31, (low | delta & ~segment & 31) <= high),
        }[mode]
        lanes.append(source if ok else lane)
        inside.append(ok)
    return lanes, inside


def _sources(x: Lowering, mode: str, b: Value, c: Value) -> tuple[Value, Value]:
    w = x.w
    lane = _lane_numbers(x)
    mask31 = integer("i32", 31)
    delta, clamp = w.both(b, mask31), w.both(c, mask31)
    segment = w.both(w.binary("lshr", c, integer("i32", 8)), mask31)
    low = w.both(lane, segment)
    free = w.differ(segment, mask31)
    high = w.either(low, w.both(clamp, free))
    if mode == "up":
        source = w.sub(lane, delta)
        valid = w.compare("icmp sge", source, high)
    else:
        source = {
            "down": lambda: w.add(lane, delta),
            "bfly": lambda: w.differ(lane, delta),
            "idx": lambda: w.either(low, w.both(delta, free)),
        }[mode]()
        valid = w.compare("icmp sle", source, high)
    return w.select(valid, source, lane), w.varying(valid)


# --- votes -----------------------------------------------------------------------------------------------------------


def _ballot(x: Lowering, predicate: Value, members: Value) -> Value:
    """Bits of the acting member lanes whose predicate holds."""
    w = x.w
    bits = Value("i32", x.bits_of(w.both(x.exec, w.varying(predicate))), True)
    return w.both(bits, members)


@lowers("vote")
def _vote(x: Lowering, inst: Inst) -> None:
    w = x.w
    op = inst.op.mods["op"]
    predicate = x.read(inst.op.operands[1], "i1")
    members = _members(x, inst)
    true = _ballot(x, predicate, members)
    if op == "ballot":
        x.write(inst.op.operands[0], true)
        return
    some = w.compare("icmp ne", true, integer("i32", 0))
    false = _ballot(x, w.negate(predicate), members)
    every = w.compare("icmp eq", false, integer("i32", 0))
    if op == "any":
        x.write(inst.op.operands[0], some)
    elif op == "all":
        x.write(inst.op.operands[0], every)
    else:
        x.write(inst.op.operands[0], w.either(every, w.negate(some)))


@lowers("activemask")
def _activemask(x: Lowering, inst: Inst) -> None:
    x.write(inst.op.operands[0], Value("i32", x.bits_of(x.active), True))


@lowers("elect")
def _elect(x: Lowering, inst: Inst) -> None:
    """The lowest acting member lane: its number, and a predicate that holds in it alone."""
    w = x.w
    target = inst.op.operands[0]
    assert isinstance(target, Pair)
    acting = _crew(x, inst)
    leader = w.intrinsic("cttz", acting, extra="i1 false")
    x.write(target.first, leader)
    x.write(target.second, w.compare("icmp eq", _lane_numbers(x), leader))


# --- match and redux -------------------------------------------------------------------------------------------------


@lowers("match")
def _match(x: Lowering, inst: Inst) -> None:
    """Which member lanes hold the same value: for each lane (any), or all or none of them (all)."""
    w = x.w
    target = inst.op.operands[0]
    kind = f"i{inst.op.mods['type'][1:]}"
    value = w.varying(x.read(inst.op.operands[1], kind))
    acting = _crew(x, inst)
    if inst.op.mods["op"] == "any":
        result = integer("i32", 0)
        for lane in range(_LANES):
            one = w.assign(f"extractelement {w.vector(kind)} {value.text}, i32 {lane}")
            same = w.compare("icmp eq", value, Value(kind, one, True))
            bit = w.both(acting, integer("i32", 1 << lane))
            result = w.either(result, w.select(same, bit, integer("i32", 0)))
        x.write(target, result)
        return
    # Those who share a mask compare with the same lane.
    leader = w.intrinsic("cttz", acting, extra="i1 false")
    same = Value("i32", x.bits_of(w.compare("icmp eq", value, _permuted(x, value, leader))), True)
    every = w.compare("icmp eq", w.both(same, acting), acting)
    result = w.select(every, acting, integer("i32", 0))
    if isinstance(target, Pair):
        x.write(target.first, result)
        x.write(target.second, every)
    else:
        x.write(target, result)


_REDUCTIONS = {"add": ("add", 0), "and": ("and", -1), "or": ("or", 0), "xor": ("xor", 0)}


@lowers("redux")
def _redux(x: Lowering, inst: Inst) -> None:
    """A reduction over the acting member lanes of each lane's mask."""
    w, mods = x.w, inst.op.mods
    if mods["type"] == "f32":
        _redux_float(x, inst)
        return
    op, signed = mods["op"], mods["type"][0] == "s"
    if op in ("min", "max"):
        stem = f"{'s' if signed else 'u'}{op}"
        neutral = {"smin": (1 << 31) - 1, "smax": -(1 << 31), "umin": -1, "umax": 0}[stem]
    else:
        stem, neutral = _REDUCTIONS[op]
    value = w.varying(x.read(inst.op.operands[1], "i32"))
    x.write(inst.op.operands[0], _over_crew(x, stem, value, integer("i32", neutral), _crew(x, inst)))


def _crew(x: Lowering, inst: Inst) -> Value:
    """The acting member lanes as bits: of each lane where masks may differ, as those of two tiles in step do."""
    return x.w.both(Value("i32", x.bits_of(x.exec), True), _members(x, inst))


def _over_crew(x: Lowering, stem: str, value: Value, neutral: Value, crew: Value) -> Value:
    """The lanes of ``crew`` reduced by ``stem``, as ``llvm.vector.reduce`` names it."""
    w = x.w
    if crew.uniform:
        mine = w.cast("trunc", w.binary("lshr", w.varying(crew), _lane_numbers(x)), "i1")
        kept = w.select(mine, value, neutral)
        return Value(value.type, w.reduce(stem, w.lanes(kept), value.type), True)
    result = w.varying(neutral)
    for lane in range(_LANES):
        text = w.assign(f"extractelement {w.vector(value.type)} {value.text}, i32 {lane}")
        member = w.compare("icmp ne", w.both(crew, integer("i32", 1 << lane)), integer("i32", 0))
        one = w.select(member, Value(value.type, text, True), neutral)
        if stem in ("add", "and", "or", "xor"):
            result = w.binary(stem, result, one)
        else:
            result = w.intrinsic(stem.removeprefix("f"), result, one)
    return result


def _redux_float(x: Lowering, inst: Inst) -> None:
    """min and max of float32, ``.abs`` of the inputs, ``.NaN`` prevailing."""
    w, mods = x.w, inst.op.mods
    value = w.varying(x.read(inst.op.operands[1], "float"))
    if "abs" in mods:
        value = w.intrinsic("fabs", value)
    op = mods["op"]
    worst = floating("float", float("inf") if op == "min" else float("-inf"))
    crew = _crew(x, inst)
    numbers = w.compare("fcmp ord", value, value)
    stem = {"min": "fminimum", "max": "fmaximum"}[op]
    best = _over_crew(x, stem, w.select(numbers, value, worst), worst, crew)
    ordered = w.both(Value("i32", w.bits(numbers.text), True), crew)
    # With .NaN every lane must be a number, else one of them.
    enough, least = ("eq", crew) if "nan" in mods else ("ne", integer("i32", 0))
    x.write(
        inst.op.operands[0],
        w.select(w.compare(f"icmp {enough}", ordered, least), w.bitcast(best, "i32"), integer("i32", 0x7FFFFFFF)),
    )
