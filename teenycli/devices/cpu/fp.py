"""Floating-point arithmetic as PTX defines it, on writer values: rounding modes, flushing, saturation, half formats.

A value of type f16 or bf16 is carried as its bits, an i16. All arithmetic here is rounded once.

May import ``value``.
"""

from __future__ import annotations

from teenycli.devices.cpu.value import Value, Writer, constant_of_bits, integer

#: LLVM's numbers of the rounding modes (``llvm.set.rounding``).
_MODES = {"rz": 0, "rp": 2, "rm": 3}
_NAN16 = 0x7FFF


def zero(type: str) -> Value:
    return constant_of_bits(type, 0)


def one(type: str) -> Value:
    return constant_of_bits(type, {"float": 0x3F800000, "double": 0x3FF0000000000000}[type])


def magnitude(w: Writer, a: Value) -> Value:
    return w.intrinsic("fabs", a)


def flush(w: Writer, a: Value) -> Value:
    """``.ftz``: a subnormal float32 becomes zero of its sign."""
    bits = w.cast("bitcast", a, "i32")
    small = w.compare("icmp eq", w.both(bits, integer("i32", 0x7F800000)), integer("i32", 0))
    kept = w.select(small, w.both(bits, integer("i32", 0x80000000)), bits)
    value = w.cast("bitcast", kept, "float")
    return Value("float", value.text, value.uniform, a.raw)


def saturate(w: Writer, a: Value) -> Value:
    """``.sat``: into [0, 1], NaN to +0."""
    low = w.select(w.compare("fcmp ogt", a, zero(a.type)), a, zero(a.type))
    return w.select(w.compare("fcmp olt", low, one(a.type)), low, one(a.type))


def relu(w: Writer, a: Value) -> Value:
    """Negative becomes +0; NaN stays."""
    return w.select(w.compare("fcmp ole", a, zero(a.type)), zero(a.type), a)


def arithmetic(w: Writer, op: str, rnd: str, *args: Value) -> Value:
    """``fadd fsub fmul fdiv sqrt fma fptrunc…`` on float or double, rounded by ``rnd`` (rn, rz, rm, rp)."""
    if rnd == "rn":
        return w.intrinsic(op, *args) if op in ("fma", "sqrt") else w.binary(op, *args)
    return w.helper(directed(w, op, rnd, args[0].type, args[0].type, len(args)), args[0].type, *args)


def conversion(w: Writer, op: str, rnd: str, a: Value, to: str) -> Value:
    """``sitofp uitofp fptrunc`` to ``to``, rounded by ``rnd``."""
    if rnd == "rn":
        return w.cast(op, a, to)
    return w.helper(directed(w, op, rnd, a.type, to, 1), to, a)


def directed(w: Writer, op: str, rnd: str, kind: str, to: str, count: int) -> str:
    """The helper that does one operation with the machine's rounding mode changed around it."""
    name = f"teeny.{op}.{rnd}.{kind}.{to}"
    if name not in w.unit.helpers:
        source, target = w.vector(kind), w.vector(to)
        overload = w.suffix(to, False) if kind == to else f"{w.suffix(to, False)}.{w.suffix(kind, False)}"
        intrinsic = f"llvm.experimental.constrained.{op}.{overload}"
        args = [f"{source} %a{k}" for k in range(count)]
        w.unit.declare(intrinsic, target, [source] * count + ["metadata", "metadata"])
        w.unit.declare("llvm.set.rounding", "void", ["i32"])
        w.unit.helpers[name] = f"""
define internal {target} @{name}({", ".join(args)}) noinline strictfp nounwind #0 {{
  call void @llvm.set.rounding(i32 {_MODES[rnd]}) strictfp
  %r = call {target} @{intrinsic}({", ".join(args)}, metadata !"round.dynamic", metadata !"fpexcept.ignore") strictfp
  call void @llvm.set.rounding(i32 1) strictfp
  ret {target} %r
}}
"""
    return name


# --- order -----------------------------------------------------------------------------------------------------------


def extreme(w: Writer, opcode: str, a: Value, b: Value, *, nan: bool) -> Value:
    """``min`` or ``max``: -0 below +0; a NaN gives way to a number, or with ``.NaN`` prevails."""
    stem = {"min": "minimum", "max": "maximum"}[opcode] + ("" if nan else "num")
    return w.intrinsic(stem, a, b)


def xor_sign(w: Writer, a: Value, b: Value, result: Value) -> Value:
    """``.xorsign.abs``: the result of magnitudes, with the product of the signs."""
    kind = {"float": "i32", "double": "i64"}[a.type]
    sign = w.differ(w.cast("bitcast", a, kind), w.cast("bitcast", b, kind))
    bits = w.either(
        w.both(sign, integer(kind, 1 << a.bits - 1)),
        w.both(w.bitcast(result, kind), integer(kind, (1 << a.bits - 1) - 1)),
    )
    return w.cast("bitcast", bits, a.type)


# --- half formats ----------------------------------------------------------------------------------------------------


def widen(w: Writer, type: str, a: Value) -> Value:
    """f16 or bf16 bits as float, exactly."""
    if type == "f16":
        return w.cast("fpext", w.bitcast(a, "half"), "float")
    return w.cast("bitcast", w.binary("shl", w.cast("zext", a, "i32"), integer("i32", 16)), "float")


def narrow(w: Writer, type: str, a: Value, rnd: str = "rn", *, payload: bool = False) -> Value:
    """A float or double rounded to f16 or bf16 bits; NaN becomes 0x7fff, or keeps a double's sign and upper payload."""
    nan = _shortened_nan(w, type, a) if payload else integer("i16", _NAN16)
    unordered = w.compare("fcmp uno", a, a)
    if a.type == "double":
        a = to_odd_float(w, a) if rnd == "rn" else conversion(w, "fptrunc", rnd, a, "float")
    bits = _round_f16(w, a, rnd) if type == "f16" else _round_bf16(w, a, rnd)
    return w.select(unordered, nan, bits)


def _shortened_nan(w: Writer, type: str, a: Value) -> Value:
    """The quiet half whose sign and payload are the upper ones of a double that is NaN."""
    bits = w.bitcast(a, "i64")
    quiet, shift = (0x7E00, 42) if type == "f16" else (0x7FC0, 45)
    sign = w.both(w.binary("lshr", bits, integer("i64", 48)), integer("i64", 0x8000))
    payload = w.both(w.binary("lshr", bits, integer("i64", shift)), integer("i64", 0x7FFF - quiet))
    return w.cast("trunc", w.either(w.either(sign, payload), integer("i64", quiet)), "i16")


def _round_f16(w: Writer, a: Value, rnd: str) -> Value:
    """The nearest half, or in a directed mode its neighbour where that one lies on the wrong side of ``a``.

    LLVM 22 ends the process on AVX-512 over a conversion of 32 floats to halves in the machine's own rounding mode.
    """
    near = w.cast("fptrunc", a, "half")
    bits = w.bitcast(near, "i16")
    if rnd == "rn":
        return bits
    back = w.cast("fpext", near, "float")
    one, minus = integer("i16", 1), integer("i16", -1)
    if rnd == "rz":
        wrong, step = w.compare("fcmp ogt", magnitude(w, back), magnitude(w, a)), minus
    else:
        wrong = w.compare("fcmp ogt" if rnd == "rm" else "fcmp olt", back, a)
        negative = w.compare("icmp slt", bits, integer("i16", 0))
        step = w.select(negative, one, minus) if rnd == "rm" else w.select(negative, minus, one)
    return w.select(wrong, w.add(bits, step), bits)


def _round_bf16(w: Writer, a: Value, rnd: str) -> Value:
    bits = w.cast("bitcast", a, "i32")
    low = integer("i32", 0xFFFF)
    if rnd == "rn":
        even = w.both(w.binary("lshr", bits, integer("i32", 16)), integer("i32", 1))
        bits = w.add(bits, w.add(even, integer("i32", 0x7FFF)))
    elif rnd in ("rp", "rm"):
        away = w.compare("icmp slt" if rnd == "rm" else "icmp sge", bits, integer("i32", 0))
        bits = w.select(away, w.add(bits, low), bits)
    return w.cast("trunc", w.binary("lshr", bits, integer("i32", 16)), "i16")


def to_odd_float(w: Writer, a: Value) -> Value:
    """A double rounded to float with an odd last bit when inexact, so that a second rounding does no harm."""
    near = w.cast("fptrunc", a, "float")
    back = w.cast("fpext", near, "double")
    bits = w.cast("bitcast", near, "i32")
    inexact = w.compare("fcmp one", back, a)
    even = w.compare("icmp eq", w.both(bits, integer("i32", 1)), integer("i32", 0))
    over = w.compare("fcmp ogt", magnitude(w, back), magnitude(w, a))
    moved = w.add(bits, w.select(over, integer("i32", -1), integer("i32", 1)))
    return w.cast("bitcast", w.select(w.both(inexact, even), moved, bits), "float")


def odd_sum(w: Writer, a: Value, b: Value) -> Value:
    """``a + b`` in double, rounded to odd: Knuth's two-sum finds what the sum has lost."""
    total = w.binary("fadd", a, b)
    rest = w.binary("fsub", total, a)
    lost = w.binary("fadd", w.binary("fsub", a, w.binary("fsub", total, rest)), w.binary("fsub", b, rest))
    bits = w.bitcast(total, "i64")
    even = w.compare("icmp eq", w.both(bits, integer("i64", 1)), integer("i64", 0))
    inexact = w.compare("fcmp one", lost, zero("double"))
    same = w.compare("icmp sge", w.differ(bits, w.bitcast(lost, "i64")), integer("i64", 0))
    moved = w.add(bits, w.select(same, integer("i64", 1), integer("i64", -1)))
    return w.bitcast(w.select(w.both(inexact, even), moved, bits), "double")


def half_arithmetic(w: Writer, type: str, op: str, *args: Value) -> Value:
    """``fadd fsub fmul fma`` on f16 or bf16 bits, rounded to nearest once, as float or double.

    Sums, and products of f16, are exact or innocuous in float. Products of bf16 may underflow there.
    """
    wide = [widen(w, type, a) for a in args]
    if op in ("fadd", "fsub") or (op == "fmul" and type == "f16"):
        return w.binary(op, *wide)
    doubles = [w.cast("fpext", a, "double") for a in wide]
    product = w.binary("fmul", doubles[0], doubles[1])
    return product if op == "fmul" else odd_sum(w, product, doubles[2])
