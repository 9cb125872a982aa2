"""Integer arithmetic (PTX ISA 9.7.1 and 9.7.2): all of it wraps, shifts nothing, and divides as the hardware does."""

from __future__ import annotations

from collections.abc import Callable

from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.program import Inst
from teenycli.devices.cpu.registry import lowers, typed
from teenycli.devices.cpu.value import Value, Writer, integer

INTS = ("u16", "u32", "u64", "s16", "s32", "s64")
_is_int = typed(*INTS)
_is_packed = typed("u16x2", "s16x2", "u8x4", "s8x4")


def kind_of(inst: Inst) -> tuple[str, bool]:
    """LLVM type and signedness of the instruction type."""
    type = inst.op.mods["type"]
    return f"i{type[1:]}", type[0] == "s"


def sources(x: Lowering, inst: Inst, kind: str) -> list[Value]:
    return [x.read(operand, kind) for operand in inst.op.operands[1:]]


# --- sums ------------------------------------------------------------------------------------------------------------


@lowers("add", "sub", takes=_is_int)
def _add(x: Lowering, inst: Inst) -> None:
    kind, signed = kind_of(inst)
    a, b = sources(x, inst, kind)
    op, mods = inst.op.opcode, inst.op.mods
    if "sat" in mods:
        x.write(inst.op.operands[0], sum_held(x.w, op, a, b, signed))
    elif "cc" in mods:
        _write_with_carry(x, inst, a, b, integer("i1", op == "sub"), subtract=op == "sub")
    else:
        x.write(inst.op.operands[0], x.w.binary(op, a, b))


def sum_held(w: Writer, op: str, a: Value, b: Value, signed: bool) -> Value:
    """``add`` or ``sub`` held to the range of the type (``.sat``)."""
    return w.intrinsic(f"{'s' if signed else 'u'}{op}.sat", a, b)


@lowers("addc", "subc", takes=_is_int)
def _addc(x: Lowering, inst: Inst) -> None:
    kind, _ = kind_of(inst)
    a, b = sources(x, inst, kind)
    _write_with_carry(x, inst, a, b, x.load(inst.scope.carry), subtract=inst.op.opcode == "subc")


def _write_with_carry(x: Lowering, inst: Inst, a: Value, b: Value, carry: Value, *, subtract: bool) -> None:
    """``a ± b ± carry``, whose own carry goes to CC.CF with ``.cc``.

    A subtraction is ``a + ~b + carry``, so its borrow is a carry that is missing. The ISA has no chain of both kinds;
    GPUs have (seen on sm_90).
    """
    w = x.w
    op = "sub" if subtract else "add"
    taken = w.negate(carry) if subtract else carry
    extra = w.cast("zext", taken, a.type) if taken.text != "false" else integer(a.type, 0)
    first = w.binary(op, a, b)
    result = w.binary(op, first, extra)
    if "cc" in inst.op.mods:
        if subtract:
            out = w.negate(w.either(w.compare("icmp ult", a, b), w.compare("icmp ult", first, extra)))
        else:
            out = w.either(w.compare("icmp ult", first, a), w.compare("icmp ult", result, first))
        x.store(inst.scope.carry, out)
    x.write(inst.op.operands[0], result)


@lowers("add", "sub", "min", "max", "neg", takes=_is_packed)
def _packed(x: Lowering, inst: Inst) -> None:
    """Two halves or four bytes, each by itself; ``.relu`` makes zero of what is negative."""
    w, op, mods = x.w, inst.op.opcode, inst.op.mods
    signed = mods["type"][0] == "s"
    bits = int(mods["type"][1:].partition("x")[0])
    zero = integer(f"i{bits}", 0)

    def one(p: Value, q: Value) -> Value:
        if op in ("min", "max"):
            result = extreme(w, op, p, q, signed)
        else:
            result = sum_held(w, op, p, q, signed) if "sat" in mods else w.binary(op, p, q)
        return extreme(w, "max", result, zero, True) if "relu" in mods else result

    args = sources(x, inst, "i32")
    if op == "neg":
        op, args = "sub", [integer("i32", 0), *args]
    x.write(inst.op.operands[0], by_halves(w, one, *args) if bits == 16 else by_bytes(w, one, *args))


def halves(w: Writer, a: Value) -> tuple[Value, Value]:
    """Low and high 16 bits of an i32."""
    return w.cast("trunc", a, "i16"), w.cast("trunc", w.binary("lshr", a, integer("i32", 16)), "i16")


def pack(w: Writer, low: Value, high: Value) -> Value:
    """Two i16 as one i32."""
    upper = w.binary("shl", w.cast("zext", high, "i32"), integer("i32", 16))
    return w.either(w.cast("zext", low, "i32"), upper)


def by_halves(w: Writer, function: Callable[..., Value], *args: Value) -> Value:
    """Apply a function of i16 values to the low and the high halves of i32 values."""
    split = [halves(w, a) for a in args]
    return pack(w, function(*(low for low, _ in split)), function(*(high for _, high in split)))


def by_bytes(w: Writer, function: Callable[..., Value], *args: Value) -> Value:
    """Apply a function of i8 values to each of the four bytes of i32 values."""
    total = integer("i32", 0)
    for shift in (0, 8, 16, 24):
        parts = [w.resize(w.binary("lshr", a, integer("i32", shift)) if shift else a, "i8") for a in args]
        byte = w.cast("zext", function(*parts), "i32")
        total = w.either(total, w.binary("shl", byte, integer("i32", shift))) if shift else byte
    return total


# --- products --------------------------------------------------------------------------------------------------------


def product(x: Lowering, a: Value, b: Value, mode: str, signed: bool) -> Value:
    """``a * b``: low half, high half, or the whole at twice the width."""
    w = x.w
    if mode == "lo":
        return w.binary("mul", a, b)
    bits = a.bits
    wide, extend = f"i{2 * bits}", "sext" if signed else "zext"
    whole = w.binary("mul", w.cast(extend, a, wide), w.cast(extend, b, wide))
    if mode == "wide":
        return whole
    return w.cast("trunc", w.binary("lshr", whole, integer(wide, bits)), a.type)


@lowers("mul", takes=_is_int)
def _mul(x: Lowering, inst: Inst) -> None:
    kind, signed = kind_of(inst)
    a, b = sources(x, inst, kind)
    x.write(inst.op.operands[0], product(x, a, b, inst.op.mods["mode"], signed), signed=signed)


@lowers("mad", "madc", takes=_is_int)
def _mad(x: Lowering, inst: Inst) -> None:
    kind, signed = kind_of(inst)
    mods = inst.op.mods
    a, b = (x.read(operand, kind) for operand in inst.op.operands[1:3])
    p = product(x, a, b, mods["mode"], signed)
    c = x.read(inst.op.operands[3], p.type)
    if "sat" in mods:
        x.write(inst.op.operands[0], x.w.intrinsic("sadd.sat", p, c))
    elif "cc" in mods or inst.op.opcode == "madc":
        carry = x.load(inst.scope.carry) if inst.op.opcode == "madc" else integer("i1", 0)
        _write_with_carry(x, inst, p, c, carry, subtract=False)
    else:
        x.write(inst.op.operands[0], x.w.add(p, c), signed=signed)


@lowers("mul24", "mad24")
def _mul24(x: Lowering, inst: Inst) -> None:
    """The product of the low 24 bits, 48 bits wide: its low or its high 32."""
    w, mods = x.w, inst.op.mods
    _, signed = kind_of(inst)
    args = sources(x, inst, "i32")
    wide = []
    for value in args[:2]:
        up = w.binary("shl", w.cast("zext", value, "i64"), integer("i64", 40))
        wide.append(w.binary("ashr" if signed else "lshr", up, integer("i64", 40)))
    whole = w.binary("mul", *wide)
    if mods["mode"] == "hi":
        whole = w.binary("lshr", whole, integer("i64", 16))
    result = w.cast("trunc", whole, "i32")
    if inst.op.opcode == "mad24":
        result = w.intrinsic("sadd.sat", result, args[2]) if "sat" in mods else w.add(result, args[2])
    x.write(inst.op.operands[0], result)


@lowers("clmad")
def _clmad(x: Lowering, inst: Inst) -> None:
    """The product of polynomials over GF(2), 128 bits wide: its low or its high half, plus (that is, xor) c."""
    w = x.w
    a, b, c = sources(x, inst, "i64")
    product = w.helper(_carryless(w, inst.op.mods["mode"]), "i64", a, b)
    x.write(inst.op.operands[0], w.differ(product, c))


def _carryless(w: Writer, mode: str) -> str:
    """The helper that adds up, without carries, the shifts of %a that the bits of %b stand for."""
    name, kind = f"teeny.clmul.{mode}", w.vector("i64")
    shift = f"shl {kind} %a, %count" if mode == "lo" else f"lshr {kind} %a, %back"
    # To the right by 64 less the bit's number; bit 0 leaves nothing above.
    w.unit.helpers[name] = f"""
define internal {kind} @{name}({kind} %a, {kind} %b) noinline nounwind #0 {{
entry:
  br label %bit
bit:
  %k = phi i64 [ {0 if mode == "lo" else 1}, %entry ], [ %next, %bit ]
  %sum = phi {kind} [ zeroinitializer, %entry ], [ %more, %bit ]
  %one = insertelement {kind} poison, i64 %k, i32 0
  %count = shufflevector {kind} %one, {kind} poison, <{w.width} x i32> zeroinitializer
  %back = sub {kind} splat (i64 64), %count
  %moved = {shift}
  %down = lshr {kind} %b, %count
  %odd = and {kind} %down, splat (i64 1)
  %mask = sub {kind} zeroinitializer, %odd
  %part = and {kind} %moved, %mask
  %more = xor {kind} %sum, %part
  %next = add i64 %k, 1
  %left = icmp ult i64 %next, 64
  br i1 %left, label %bit, label %done
done:
  ret {kind} %more
}}
"""
    return name


@lowers("sad")
def _sad(x: Lowering, inst: Inst) -> None:
    w = x.w
    kind, signed = kind_of(inst)
    a, b, c = sources(x, inst, kind)
    less = w.compare("icmp slt" if signed else "icmp ult", a, b)
    x.write(inst.op.operands[0], w.add(c, w.select(less, w.sub(b, a), w.sub(a, b))))


@lowers("dp4a", "dp2a")
def _dot(x: Lowering, inst: Inst) -> None:
    """Dot product of bytes (dp4a), or of two halves with two bytes (dp2a), added to c."""
    w, mods = x.w, inst.op.mods
    a, b, total = sources(x, inst, "i32")
    wide = inst.op.opcode == "dp2a"
    skip = 16 if mods.get("mode") == "hi" else 0
    for k in range(2 if wide else 4):
        p = extract_bits(x, a, 16 * k if wide else 8 * k, 16 if wide else 8, mods["atype"][0] == "s")
        q = extract_bits(x, b, 8 * k + skip, 8, mods["btype"][0] == "s")
        total = w.add(total, w.binary("mul", p, q))
    x.write(inst.op.operands[0], total)


def extract_bits(x: Lowering, a: Value, start: int, length: int, signed: bool) -> Value:
    """A fixed bit field of an i32."""
    w = x.w
    up = 32 - start - length
    a = w.binary("shl", a, integer("i32", up)) if up else a
    return w.binary("ashr" if signed else "lshr", a, integer("i32", 32 - length))


# --- division --------------------------------------------------------------------------------------------------------


@lowers("div", "rem", takes=_is_int)
def _div(x: Lowering, inst: Inst) -> None:
    """Division by zero, which the ISA leaves open, gives all ones, as the remainder too, as GPUs do (seen on sm_90)."""
    kind, signed = kind_of(inst)
    a, b = sources(x, inst, kind)
    quotient = divide(x, a, b, signed)
    if inst.op.opcode == "rem":
        w = x.w
        by_zero = w.compare("icmp eq", b, integer(kind, 0))
        rest = w.select(by_zero, quotient, w.sub(a, w.binary("mul", quotient, b)))
        x.write(inst.op.operands[0], rest, signed=signed)
    else:
        x.write(inst.op.operands[0], quotient, signed=signed)


def divide(x: Lowering, a: Value, b: Value, signed: bool) -> Value:
    """The quotient. Up to 32 bits in vectors of doubles, which hold every quotient exactly enough."""
    w = x.w
    zero = w.compare("icmp eq", b, integer(b.type, 0))
    if a.bits > 32 or (a.uniform and b.uniform):
        quotient = _divide_scalar(x, a, b, zero, signed)
    else:
        up, convert = ("sext", "sitofp") if signed else ("zext", "uitofp")
        p, q = (w.cast(up, v, "i32") if v.bits < 32 else v for v in (a, b))
        real = w.binary("fdiv", w.cast(convert, p, "double"), w.cast(convert, q, "double"))
        whole = w.intrinsic("trunc", real)
        # Adding 1.5 * 2**52 leaves the integer in the low bits of the double.
        shifted = w.binary("fadd", whole, Value("double", "0x4338000000000000", True))
        quotient = w.cast("trunc", w.bitcast(shifted, "i64"), a.type)
    return w.select(zero, integer(a.type, -1), quotient)


def _divide_scalar(x: Lowering, a: Value, b: Value, zero: Value, signed: bool) -> Value:
    """By LLVM's own division, whose undefined cases (a zero divisor, the least number by -1) are kept away."""
    w = x.w
    one = integer(b.type, 1)
    if not signed:
        return w.binary("udiv", a, w.select(zero, one, b))
    minus = w.compare("icmp eq", b, integer(b.type, -1))
    quotient = w.binary("sdiv", a, w.select(w.either(zero, minus), one, b))
    return w.select(minus, w.sub(integer(a.type, 0), a), quotient)


# --- sign and order --------------------------------------------------------------------------------------------------


@lowers("neg", takes=_is_int)
def _neg(x: Lowering, inst: Inst) -> None:
    kind, _ = kind_of(inst)
    x.write(inst.op.operands[0], x.w.sub(integer(kind, 0), x.read(inst.op.operands[1], kind)))


@lowers("abs", takes=_is_int)
def _abs(x: Lowering, inst: Inst) -> None:
    kind, _ = kind_of(inst)
    x.write(inst.op.operands[0], x.w.intrinsic("abs", x.read(inst.op.operands[1], kind), extra="i1 false"))


def extreme(w: Writer, opcode: str, a: Value, b: Value, signed: bool) -> Value:
    """``min`` or ``max``; LLVM knows a comparison and its selection as its own instruction for it."""
    order = "lt" if opcode == "min" else "gt"
    return w.select(w.compare(f"icmp {'s' if signed else 'u'}{order}", a, b), a, b)


@lowers("min", "max", takes=_is_int)
def _min(x: Lowering, inst: Inst) -> None:
    kind, signed = kind_of(inst)
    a, b = sources(x, inst, kind)
    result = extreme(x.w, inst.op.opcode, a, b, signed)
    if "relu" in inst.op.mods:
        result = extreme(x.w, "max", result, integer(kind, 0), True)
    x.write(inst.op.operands[0], result)
