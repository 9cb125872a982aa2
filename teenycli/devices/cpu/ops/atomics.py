"""Atomic operations (PTX ISA 9.7.13: atom, red): lane by lane, each truly atomic among the threads of the pool.

The warps of a CTA run on one thread, so in shared memory an operation is a load, the operation and a store.
"""

from __future__ import annotations

from teenycli.devices.cpu import fp
from teenycli.devices.cpu.gather import require_hosts
from teenycli.devices.cpu.layout import ID_SHIFT, SHARED_ID
from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.native import each_lane
from teenycli.devices.cpu.ops.access import access_of, address_of, addresses
from teenycli.devices.cpu.ops.integers import by_halves, extreme
from teenycli.devices.cpu.ops.parts import join_parts, part_bits, take_part
from teenycli.devices.cpu.program import Inst
from teenycli.devices.cpu.registry import Mods, lowers
from teenycli.devices.cpu.value import Unit, Value, Writer, integer
from teenycli.ptx.code import Mem

#: Operations that are one LLVM instruction on memory, for integers.
_DIRECT = {"add": "add", "and": "and", "or": "or", "xor": "xor", "exch": "xchg", "inc": "uinc_wrap",
           "dec": "udec_wrap"}  # fmt: skip


def _takes(mods: Mods) -> bool:
    """``red.async`` without an mbarrier may be done at once; one that counts its bytes is in ``async_copies``."""
    return "completion" not in mods


@lowers("multimem", takes=lambda mods: "red" in mods)
@lowers("atom", "red", takes=_takes)
def atomic(x: Lowering, inst: Inst) -> None:
    """The operation on memory, for every acting lane; what follows its operands is left alone."""
    w, g, mods = x.w, x.unit.group, inst.op.mods
    has_result = inst.op.opcode == "atom"
    operands = list(inst.op.operands)
    target = operands.pop(0) if has_result else None
    mem = operands[0]
    assert isinstance(mem, Mem)
    access = access_of(x, inst, mem)
    access.store = True
    kind = f"i{8 * access.size}"
    count = 2 if mods["op"] == "cas" else 1
    sources = [[x.read(e, kind) for e in x.elements(o)] for o in operands[1 : 1 + count]]
    lanes, bits = w.lanes(address_of(x, mem)), x.bits_of(x.exec)
    name = _helper(x.unit, access.window, mods["op"], mods["type"], access.size)
    results: list[list[str]] = [[] for _ in range(access.count)]
    for part in range(w.width // g):
        places = addresses(x, access, lanes, part)
        mask = part_bits(x, bits, part)
        for k in range(access.count):
            given = "".join(f", <{g} x {kind}> {take_part(x, w.lanes(s[k]), kind, part)}" for s in sources)
            results[k].append(
                w.assign(
                    f"call <{g} x {kind}> @{name}(ptr %ctx, <{g} x i64> {places}{given}, i{g} {mask}, "
                    f"i32 {x.site()}, i32 {part * g}, i64 {access.span}, i64 {k * access.size})"
                )
            )
    x.check_dead()
    if target is not None:
        for to, pieces in zip(x.elements(target), results, strict=True):
            x.write(to, Value(kind, join_parts(x, pieces, kind), False), signed=mods["type"][0] == "s")


def _helper(unit: Unit, window: str, op: str, type: str, size: int) -> str:
    """The out-of-line function of one operation: old values of the acting lanes."""
    name = f"teeny.atom.{window}.{op}.{type}"
    if name in unit.helpers:
        return name
    hosts = require_hosts(unit, f"{window}.store")
    g, kind = unit.group, f"i{8 * size}"
    vector = f"<{g} x {kind}>"
    count = 2 if op == "cas" else 1
    params = "".join(f", {vector} %b{k}" for k in range(count))
    rooms = "\n".join(f"  %r{k} = alloca {vector}\n  store {vector} %b{k}, ptr %r{k}" for k in range(count))
    picks = "\n".join(
        f"  %q{k} = getelementptr {kind}, ptr %r{k}, i32 %lane\n  %s{k} = load {kind}, ptr %q{k}" for k in range(count)
    )
    body = f"""
  %place = getelementptr i64, ptr %hosts, i32 %lane
  %host = load i64, ptr %place
  %given = getelementptr i64, ptr %asked, i32 %lane
  %address = load i64, ptr %given
  %at = add i64 %host, %delta
  %p = inttoptr i64 %at to ptr
{picks}
  br label %go
go:
{_operation(unit, window, op, type, kind, size)}
next:
  %to = getelementptr {kind}, ptr %olds, i32 %lane
  store {kind} %old, ptr %to
  br label %head"""
    result = f"%sofar = load {vector}, ptr %olds\n  ret {vector} %sofar"
    loop = f"""
entry:
  %hosts = alloca <{g} x i64>
  %asked = alloca <{g} x i64>
  store <{g} x i64> %addresses, ptr %asked
  %olds = alloca {vector}
  store {vector} zeroinitializer, ptr %olds
{rooms}
  %fine = call i1 @{hosts}(ptr %ctx, <{g} x i64> %addresses, i{g} %mask, i32 %site, i32 %lane0, i64 %span, ptr %hosts)
  br i1 %fine, label %begin, label %out
{each_lane(g, body, result=result, entry="begin")}"""
    unit.helpers[name] = (
        f"define internal {vector} @{name}(ptr %ctx, <{g} x i64> %addresses{params}, i{g} %mask, i32 %site, "
        f"i32 %lane0, i64 %span, i64 %delta) noinline nounwind #0 {{{loop}}}"
    )
    return name


def _operation(unit: Unit, window: str, op: str, type: str, kind: str, size: int) -> str:
    """Text that does it at ``%p`` and leaves ``%old``, ending in a jump to ``next``."""
    if window == "shared":
        lines, new = _new_value(unit, window, op, type, Value(kind, "%old", True), kind)
        before, after = f"%old = load {kind}, ptr %p, align {size}", f"store {kind} {new}, ptr %p, align {size}"
        return f"  {before}\n{lines}\n  {after}\n  br label %next"
    if op == "cas":
        return f"""  %pair = cmpxchg ptr %p, {kind} %s0, {kind} %s1 seq_cst seq_cst, align {size}
  %old = extractvalue {{ {kind}, i1 }} %pair, 0
  br label %next"""
    direct = _DIRECT.get(op) if type[0] in "bus" and type[1:].isdigit() else None
    if op in ("min", "max") and type[0] in "us":
        direct = op if type[0] == "s" else f"u{op}"
    if direct is not None:
        return f"  %old = atomicrmw {direct} ptr %p, {kind} %s0 seq_cst, align {size}\n  br label %next"
    lines, new = _new_value(unit, window, op, type, Value(kind, "%old", True), kind)
    return f"""  %seen = load atomic {kind}, ptr %p monotonic, align {size}
  br label %try
try:
  %old = phi {kind} [ %seen, %go ], [ %now, %try ]
{lines}
  %pair = cmpxchg ptr %p, {kind} %old, {kind} {new} seq_cst seq_cst, align {size}
  %now = extractvalue {{ {kind}, i1 }} %pair, 0
  %won = extractvalue {{ {kind}, i1 }} %pair, 1
  br i1 %won, label %next, label %try"""


def _new_value(unit: Unit, window: str, op: str, type: str, old: Value, kind: str) -> tuple[str, str]:
    """Scalar text of the operation, and the name of its result."""
    w = Writer(unit)
    b = Value(kind, "%s0", True)
    if op == "cas":
        new = w.select(w.compare("icmp eq", old, b), Value(kind, "%s1", True), old)
    elif op == "exch":
        new = b
    elif op in ("inc", "dec"):
        new = _wrapping(w, op, old, b)
    elif type == "f64":
        new = w.bitcast(w.binary("fadd", w.bitcast(old, "double"), w.bitcast(b, "double")), kind)
    elif type == "f32":
        new = _add_single(w, window, w.bitcast(old, "float"), w.bitcast(b, "float"))
    elif "f16" in type:
        new = _half(w, op, type, old, b)
    elif op in ("min", "max"):
        new = extreme(w, op, old, b, type[0] == "s")
    else:
        new = w.binary(op, old, b)
    return "\n".join(w.lines), new.text


def _add_single(w: Writer, window: str, old: Value, b: Value) -> Value:
    """Subnormals, given and resulting, are kept in shared memory only (PTX ISA, "atom": ``atom.add.f32``)."""
    kept = w.bitcast(w.binary("fadd", old, b), "i32")
    if window == "shared":
        return kept
    total = fp.flush(w, w.binary("fadd", fp.flush(w, old), fp.flush(w, b)))
    number = w.binary("lshr", Value("i64", "%address", True), integer("i64", ID_SHIFT))
    in_shared = w.compare("icmp eq", number, integer("i64", SHARED_ID))
    return w.select(in_shared, kept, w.bitcast(total, "i32"))


def _wrapping(w: Writer, op: str, old: Value, b: Value) -> Value:
    zero, one = integer(old.type, 0), integer(old.type, 1)
    if op == "inc":
        return w.select(w.compare("icmp uge", old, b), zero, w.add(old, one))
    out = w.either(w.compare("icmp eq", old, zero), w.compare("icmp ugt", old, b))
    return w.select(out, b, w.sub(old, one))


def _half(w: Writer, op: str, type: str, old: Value, b: Value) -> Value:
    name = type.removesuffix("x2")

    def one(p: Value, q: Value) -> Value:
        if op == "add":
            return fp.narrow(w, name, fp.half_arithmetic(w, name, "fadd", p, q))
        return fp.narrow(w, name, fp.extreme(w, op, fp.widen(w, name, p), fp.widen(w, name, q), nan=False))

    return by_halves(w, one, old, b) if type.endswith("x2") else one(old, b)
