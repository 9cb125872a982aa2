"""Logic, shifts, and the instructions that look at single bits and bytes (PTX ISA 9.7.1, 9.7.8, 9.7.9 prmt)."""

from __future__ import annotations

from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.ops.integers import kind_of, sources
from teenycli.devices.cpu.program import Inst
from teenycli.devices.cpu.registry import lowers, typed
from teenycli.devices.cpu.value import Value, integer
from teenycli.ptx.code import Pair
from teenycli.ptx.model import Int

_is_pred = typed("pred")
_is_bits = typed("b16", "b32", "b64")


@lowers("and", "or", "xor", takes=_is_pred)
def _logic_pred(x: Lowering, inst: Inst) -> None:
    a, b = sources(x, inst, "i1")
    x.write(inst.op.operands[0], x.w.binary(inst.op.opcode, a, b))


@lowers("and", "or", "xor", takes=_is_bits)
def _logic(x: Lowering, inst: Inst) -> None:
    kind, _ = kind_of(inst)
    a, b = sources(x, inst, kind)
    x.write(inst.op.operands[0], x.w.binary(inst.op.opcode, a, b))


@lowers("not")
def _not(x: Lowering, inst: Inst) -> None:
    kind = "i1" if inst.op.mods["type"] == "pred" else kind_of(inst)[0]
    x.write(inst.op.operands[0], x.w.negate(x.read(inst.op.operands[1], kind)))


@lowers("cnot")
def _cnot(x: Lowering, inst: Inst) -> None:
    kind, _ = kind_of(inst)
    a = x.read(inst.op.operands[1], kind)
    x.write(inst.op.operands[0], x.w.cast("zext", x.w.compare("icmp eq", a, integer(kind, 0)), kind))


@lowers("lop3")
def _lop3(x: Lowering, inst: Inst) -> None:
    """Any logical function of three inputs, by its truth table: a sum of the minterms that are set."""
    w = x.w
    a, b, c = (x.read(operand, "i32") for operand in inst.op.operands[1:4])
    table = inst.op.operands[4]
    assert isinstance(table, Int)
    result = _select3(x, table.value & 0xFF, a, b, c)
    target = inst.op.operands[0]
    if "bool" not in inst.op.mods:
        x.write(target, result)
        return
    assert isinstance(target, Pair)
    q = x.read(inst.op.operands[5], "i1")
    test = w.compare("icmp ne", result, integer("i32", 0))
    x.write(target.first, result)
    x.write(target.second, w.binary(inst.op.mods["bool"], test, q))


def _select3(x: Lowering, table: int, a: Value, b: Value, c: Value) -> Value:
    """By halves of the table: a chooses between two functions of b and c (bits 4 to 7, and 0 to 3)."""
    w = x.w

    def of_two(bits: int) -> Value:
        high, low = bits >> 2, bits & 3
        choices = {0: integer("i32", 0), 3: integer("i32", -1), 2: c, 1: w.negate(c) if 1 in (high, low) else c}
        if high == low:
            return choices[high]
        return w.either(w.both(b, choices[high]), w.both(w.negate(b), choices[low]))

    high, low = table >> 4, table & 15
    if high == low:
        return of_two(high)
    return w.either(w.both(a, of_two(high)), w.both(w.negate(a), of_two(low)))


# --- shifts ----------------------------------------------------------------------------------------------------------


def shift(x: Lowering, op: str, a: Value, amount: Value) -> Value:
    """``shl``, ``lshr`` or ``ashr`` by an unsigned i32; amounts past the width shift everything out."""
    w = x.w
    bits = a.bits
    if amount.uniform and not amount.text.startswith("%"):
        number = int(amount.text) & 0xFFFFFFFF
        if number < bits:
            return w.binary(op, a, integer(a.type, number))
        return w.binary(op, a, integer(a.type, bits - 1)) if op == "ashr" else integer(a.type, 0)
    inside = w.compare("icmp ult", amount, integer("i32", bits))
    safe = w.select(inside, amount, integer("i32", bits - 1))
    shifted = w.binary(op, a, w.resize(safe, a.type))
    return shifted if op == "ashr" else w.select(inside, shifted, integer(a.type, 0))


@lowers("shl", "shr")
def _shift(x: Lowering, inst: Inst) -> None:
    kind, signed = kind_of(inst)
    a, amount = x.read(inst.op.operands[1], kind), x.read(inst.op.operands[2], "i32")
    op = "shl" if inst.op.opcode == "shl" else "ashr" if signed else "lshr"
    x.write(inst.op.operands[0], shift(x, op, a, amount), signed=signed)


@lowers("shf")
def _shf(x: Lowering, inst: Inst) -> None:
    """Funnel shift of b:a; the amount is taken modulo 32, or held to 32."""
    w, mods = x.w, inst.op.mods
    a, b, amount = sources(x, inst, "i32")
    if mods["mode"] == "wrap":
        amount = w.both(amount, integer("i32", 31))
    else:
        amount = w.intrinsic("umin", amount, integer("i32", 32))
    both = w.either(w.binary("shl", w.cast("zext", b, "i64"), integer("i64", 32)), w.cast("zext", a, "i64"))
    by = w.cast("zext", amount, "i64")
    if mods["op"] == "l":
        result = w.binary("lshr", w.binary("shl", both, by), integer("i64", 32))
    else:
        result = w.binary("lshr", both, by)
    x.write(inst.op.operands[0], w.cast("trunc", result, "i32"))


# --- counting --------------------------------------------------------------------------------------------------------


@lowers("popc")
def _popc(x: Lowering, inst: Inst) -> None:
    kind, _ = kind_of(inst)
    x.write(inst.op.operands[0], x.w.resize(x.w.intrinsic("ctpop", x.read(inst.op.operands[1], kind)), "i32"))


@lowers("clz")
def _clz(x: Lowering, inst: Inst) -> None:
    kind, _ = kind_of(inst)
    count = x.w.intrinsic("ctlz", x.read(inst.op.operands[1], kind), extra="i1 false")
    x.write(inst.op.operands[0], x.w.resize(count, "i32"))


@lowers("brev")
def _brev(x: Lowering, inst: Inst) -> None:
    kind, _ = kind_of(inst)
    x.write(inst.op.operands[0], x.w.intrinsic("bitreverse", x.read(inst.op.operands[1], kind)))


@lowers("bfind")
def _bfind(x: Lowering, inst: Inst) -> None:
    """The highest bit that differs from the sign (or that is set); -1 for none."""
    w = x.w
    kind, signed = kind_of(inst)
    a = x.read(inst.op.operands[1], kind)
    bits = a.bits
    if signed:
        a = w.differ(a, w.binary("ashr", a, integer(kind, bits - 1)))
    count = w.resize(w.intrinsic("ctlz", a, extra="i1 false"), "i32")
    none = w.compare("icmp eq", count, integer("i32", bits))
    place = count if "shiftamt" in inst.op.mods else w.sub(integer("i32", bits - 1), count)
    x.write(inst.op.operands[0], w.select(none, integer("i32", -1), place))


@lowers("fns")
def _fns(x: Lowering, inst: Inst) -> None:
    """Find the n-th set bit, upward or downward from a start: 32 steps of a count."""
    w = x.w
    mask, base, offset = sources(x, inst, "i32")
    zero, one = integer("i32", 0), integer("i32", 1)
    downward = w.compare("icmp slt", offset, zero)
    wanted = w.select(downward, w.sub(zero, offset), offset)
    start = w.both(base, integer("i32", 31))
    found, seen = integer("i32", -1), zero
    here = w.compare("icmp ne", w.both(w.binary("lshr", mask, start), one), zero)
    for k in range(32):
        step = integer("i32", k)
        place = w.select(downward, w.sub(start, step), w.add(start, step))
        inside = w.compare("icmp ult", place, integer("i32", 32))
        bit = w.both(w.binary("lshr", mask, w.both(place, integer("i32", 31))), one)
        hit = w.both(inside, w.compare("icmp ne", bit, zero))
        seen = w.add(seen, w.cast("zext", hit, "i32"))
        new = w.both(w.both(hit, w.compare("icmp eq", seen, wanted)), w.compare("icmp eq", found, integer("i32", -1)))
        found = w.select(new, place, found)
    at_start = w.select(here, start, integer("i32", -1))
    x.write(inst.op.operands[0], w.select(w.compare("icmp eq", offset, zero), at_start, found))


# --- bit fields ------------------------------------------------------------------------------------------------------


def _low_bits(x: Lowering, kind: str, count: Value) -> Value:
    """A mask of the lowest ``count`` (i32) bits, all of them from the width on."""
    return x.w.negate(shift(x, "shl", integer(kind, -1), count))


def _place(x: Lowering, inst: Inst, first: int, bits: int) -> list[Value]:
    """Position and length. The ISA leaves values past 255 open: as on GPUs (seen on sm_90) the 32-bit forms take the
    lowest 8 bits, the 64-bit ones hold them at the end of the register.
    """
    given = [x.read(operand, "i32") for operand in inst.op.operands[first : first + 2]]
    limit = integer("i32", 255)
    return [x.w.both(value, limit) if bits == 32 else x.w.intrinsic("umin", value, limit) for value in given]


@lowers("bfe")
def _bfe(x: Lowering, inst: Inst) -> None:
    """Bits pos to pos + len - 1, zero- or sign-extended; the sign is that of the last bit within the register."""
    w = x.w
    kind, signed = kind_of(inst)
    a = x.read(inst.op.operands[1], kind)
    bits = a.bits
    start, length = _place(x, inst, 2, bits)
    shifted = shift(x, "ashr" if signed else "lshr", a, start)
    mask = _low_bits(x, kind, length)
    field = w.both(shifted, mask)
    if signed:
        last = w.intrinsic("umin", w.sub(w.add(start, length), integer("i32", 1)), integer("i32", bits - 1))
        sign = w.both(shift(x, "lshr", a, last), integer(kind, 1))
        some = w.compare("icmp ne", length, integer("i32", 0))
        negative = w.both(some, w.compare("icmp ne", sign, integer(kind, 0)))
        field = w.select(negative, w.either(field, w.negate(mask)), field)
    x.write(inst.op.operands[0], field)


@lowers("bfi")
def _bfi(x: Lowering, inst: Inst) -> None:
    """The low bits of a, put into b at pos."""
    w = x.w
    kind, _ = kind_of(inst)
    a, b = (x.read(o, kind) for o in inst.op.operands[1:3])
    start, length = _place(x, inst, 3, a.bits)
    mask = shift(x, "shl", _low_bits(x, kind, length), start)
    x.write(inst.op.operands[0], w.either(w.both(shift(x, "shl", a, start), mask), w.both(b, w.negate(mask))))


@lowers("bmsk")
def _bmsk(x: Lowering, inst: Inst) -> None:
    w = x.w
    start, length = sources(x, inst, "i32")
    if inst.op.mods["mode"] == "wrap":
        start, length = (w.both(v, integer("i32", 31)) for v in (start, length))
    x.write(inst.op.operands[0], shift(x, "shl", _low_bits(x, "i32", length), start))


@lowers("szext")
def _szext(x: Lowering, inst: Inst) -> None:
    """Sign- or zero-extend the low b bits; none give zero, 32 and more all (``.clamp``)."""
    w = x.w
    _, signed = kind_of(inst)
    a, count = sources(x, inst, "i32")
    if inst.op.mods["mode"] == "wrap":
        count = w.both(count, integer("i32", 31))
    count = w.intrinsic("umin", count, integer("i32", 32))
    up = w.sub(integer("i32", 32), count)
    raised = shift(x, "shl", a, up)
    result = shift(x, "ashr" if signed else "lshr", raised, up)
    x.write(inst.op.operands[0], w.select(w.compare("icmp eq", count, integer("i32", 0)), integer("i32", 0), result))


@lowers("prmt")
def _prmt(x: Lowering, inst: Inst) -> None:
    """Four bytes picked from the eight of b:a. In the default mode bit 3 of a selector spreads the byte's sign."""
    w = x.w
    a, b, selector = sources(x, inst, "i32")
    pool = w.either(w.binary("shl", w.cast("zext", b, "i64"), integer("i64", 32)), w.cast("zext", a, "i64"))
    mode = inst.op.mods.get("mode")
    result = integer("i32", 0)
    for k in range(4):
        if mode is None:
            nibble = w.binary("lshr", selector, integer("i32", 4 * k)) if k else selector
            pick = w.both(nibble, integer("i32", 7))
        else:
            pick = _mode_pick(x, mode, k, w.both(selector, integer("i32", 3)))
        by = w.cast("zext", w.binary("shl", pick, integer("i32", 3)), "i64")
        byte = w.both(w.cast("trunc", w.binary("lshr", pool, by), "i32"), integer("i32", 255))
        if mode is None:
            sign = w.both(nibble, integer("i32", 8))
            spread = w.select(w.compare("icmp ugt", byte, integer("i32", 127)), integer("i32", 255), integer("i32", 0))
            byte = w.select(w.compare("icmp ne", sign, integer("i32", 0)), spread, byte)
        result = w.either(result, w.binary("shl", byte, integer("i32", 8 * k)) if k else byte)
    x.write(inst.op.operands[0], result)


def _mode_pick(x: Lowering, mode: str, k: int, c: Value) -> Value:
    """Which byte goes to place ``k`` in a special mode (PTX ISA, "prmt", table of modes)."""
    w = x.w
    if mode == "f4e":
        return w.add(c, integer("i32", k))
    if mode == "b4e":
        return w.both(w.sub(c, integer("i32", k)), integer("i32", 7))
    if mode == "rc8":
        return c
    if mode == "ecl":
        return w.intrinsic("umax", c, integer("i32", k))
    if mode == "ecr":
        return w.intrinsic("umin", c, integer("i32", k))
    low = w.binary("shl", w.both(c, integer("i32", 1)), integer("i32", 1))
    return w.add(low, integer("i32", k & 1))
