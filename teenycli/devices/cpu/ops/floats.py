"""Floating-point arithmetic (PTX ISA 9.7.3 to 9.7.5): f32, f64, f16, bf16 and their pairs."""

from __future__ import annotations

from collections.abc import Callable

from teenycli.devices.cpu import fp, mathlib
from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.ops.integers import by_halves
from teenycli.devices.cpu.program import Inst
from teenycli.devices.cpu.registry import Mods, lowers, typed
from teenycli.devices.cpu.value import Value, constant_of_bits, integer

_SINGLE = typed("f32", "f64")
_HALF = typed("f16", "bf16", "f16x2", "bf16x2")
_is_f32x2 = typed("f32x2")
_OPS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "fma": "fma", "mad": "fma"}


def float_type(type: str) -> str:
    return {"f32": "float", "f64": "double", "f16": "half"}[type]


def _plain(mods: Mods) -> bool:
    return mods.get("type") in ("f32", "f64") and "atype" not in mods


def finish(x: Lowering, inst: Inst, value: Value) -> None:
    """Flush or saturate as the instruction says, and write."""
    if "ftz" in inst.op.mods and value.type == "float":
        value = fp.flush(x.w, value)
    if "sat" in inst.op.mods:
        value = fp.saturate(x.w, value)
    x.write(inst.op.operands[0], value)


def arguments(x: Lowering, inst: Inst, kind: str) -> list[Value]:
    """Source operands, flushed with ``.ftz``."""
    values = [x.read(operand, kind) for operand in inst.op.operands[1:]]
    return [fp.flush(x.w, v) for v in values] if "ftz" in inst.op.mods and kind == "float" else values


@lowers("add", "sub", "mul", "fma", "mad", takes=_plain)
def _arithmetic(x: Lowering, inst: Inst) -> None:
    mods = inst.op.mods
    args = arguments(x, inst, float_type(mods["type"]))
    finish(x, inst, fp.arithmetic(x.w, _OPS[inst.op.opcode], mods.get("rnd", "rn"), *args))


@lowers("add", "sub", "fma", takes=lambda mods: mods.get("type") == "f32" and mods.get("atype") in ("f16", "bf16"))
def _mixed(x: Lowering, inst: Inst) -> None:
    """Half operands widened exactly, then float32 arithmetic; the last operand is float32."""
    mods, w = inst.op.mods, x.w
    *narrow, last = inst.op.operands[1:]
    wide = [fp.widen(w, mods["atype"], x.read(operand, "i16")) for operand in narrow]
    args = [*wide, x.read(last, "float")]
    finish(x, inst, fp.arithmetic(w, _OPS[inst.op.opcode], mods.get("rnd", "rn"), *args))


@lowers("add", "sub", "mul", "fma", takes=_is_f32x2)
def _two_floats(x: Lowering, inst: Inst) -> None:
    w, mods = x.w, inst.op.mods
    pairs = [x.read(operand, "i64") for operand in inst.op.operands[1:]]
    results = []
    for shift in (0, 32):
        args = []
        for pair in pairs:
            part = w.binary("lshr", pair, integer("i64", shift)) if shift else pair
            value = w.bitcast(w.cast("trunc", part, "i32"), "float")
            args.append(fp.flush(w, value) if "ftz" in mods else value)
        value = fp.arithmetic(w, _OPS[inst.op.opcode], mods.get("rnd", "rn"), *args)
        results.append(w.bitcast(fp.flush(w, value) if "ftz" in mods else value, "i32"))
    low, high = (w.cast("zext", value, "i64") for value in results)
    x.write(inst.op.operands[0], w.either(low, w.binary("shl", high, integer("i64", 32))))


# --- halves ----------------------------------------------------------------------------------------------------------


def _apply(x: Lowering, inst: Inst, function: Callable[..., Value]) -> None:
    """Apply a function of i16 bits to a half, or to both halves of a pair."""
    if inst.op.mods["type"].endswith("x2"):
        args = [x.read(operand, "i32") for operand in inst.op.operands[1:]]
        x.write(inst.op.operands[0], by_halves(x.w, function, *args))
    else:
        x.write(inst.op.operands[0], function(*(x.read(operand, "i16") for operand in inst.op.operands[1:])))


def flush_half(x: Lowering, a: Value) -> Value:
    """A subnormal f16 becomes zero of its sign."""
    w = x.w
    small = w.compare("icmp eq", w.both(a, integer("i16", 0x7C00)), integer("i16", 0))
    return w.select(small, w.both(a, integer("i16", 0x8000)), a)


#: The NaN, of either sign, that a tensor copy fills with where it is out of bounds (PTX ISA 5.5, "OOB-NaN"); its bits
#: stand in no document (docs/cpu-accuracy.md).
OOB_NAN = 0x7FF7


def _out_of_bounds(x: Lowering, a: Value) -> Value:
    return x.w.compare("icmp eq", x.w.both(a, integer("i16", 0x7FFF)), integer("i16", OOB_NAN))


@lowers("add", "sub", "mul", "fma", takes=_HALF)
def _half(x: Lowering, inst: Inst) -> None:
    """``.oob`` makes +0 of a product with a number that was out of bounds, and of all that is added to it."""
    w, mods = x.w, inst.op.mods
    type = mods["type"].removesuffix("x2")

    def one(*args: Value) -> Value:
        given = [flush_half(x, a) for a in args] if "ftz" in mods else args
        value = fp.half_arithmetic(w, type, _OPS[inst.op.opcode], *given)
        if "sat" in mods:
            value = fp.saturate(w, value)
        if "relu" in mods:
            value = fp.relu(w, value)
        bits = fp.narrow(w, type, value)
        if "oob" in mods:
            outside = w.either(_out_of_bounds(x, args[0]), _out_of_bounds(x, args[1]))
            return w.select(outside, integer("i16", 0), bits)
        return flush_half(x, bits) if "ftz" in mods else bits

    _apply(x, inst, one)


@lowers("neg", "abs", takes=_HALF)
def _half_sign(x: Lowering, inst: Inst) -> None:
    w, mods = x.w, inst.op.mods
    type = mods["type"].removesuffix("x2")
    infinity = 0x7C00 if type == "f16" else 0x7F80

    def one(a: Value) -> Value:
        a = flush_half(x, a) if "ftz" in mods else a
        size = w.both(a, integer("i16", 0x7FFF))
        result = size if inst.op.opcode == "abs" else w.differ(a, integer("i16", 0x8000))
        return w.select(w.compare("icmp ugt", size, integer("i16", infinity)), integer("i16", 0x7FFF), result)

    _apply(x, inst, one)


@lowers("min", "max", takes=_HALF)
def _half_extreme(x: Lowering, inst: Inst) -> None:
    w, mods = x.w, inst.op.mods
    type = mods["type"].removesuffix("x2")

    def one(*args: Value) -> Value:
        wide = [fp.widen(w, type, flush_half(x, a) if "ftz" in mods else a) for a in args]
        return fp.narrow(w, type, _extreme(x, inst, wide))

    _apply(x, inst, one)


# --- sign and order --------------------------------------------------------------------------------------------------


@lowers("neg", "abs", takes=_SINGLE)
def _sign(x: Lowering, inst: Inst) -> None:
    w = x.w
    (a,) = arguments(x, inst, float_type(inst.op.mods["type"]))
    finish(x, inst, w.unary("fneg", a) if inst.op.opcode == "neg" else fp.magnitude(w, a))


def _extreme(x: Lowering, inst: Inst, args: list[Value]) -> Value:
    w, mods = x.w, inst.op.mods
    values = [fp.magnitude(w, a) for a in args] if "abs" in mods else args
    result = values[0]
    for a in values[1:]:
        result = fp.extreme(w, inst.op.opcode, result, a, nan="nan" in mods)
    if "xorsign" not in mods:
        return result
    signed = fp.xor_sign(w, args[0], args[1], result)
    return w.select(w.compare("fcmp uno", result, result), result, signed)


@lowers("min", "max", takes=_SINGLE)
def _min(x: Lowering, inst: Inst) -> None:
    finish(x, inst, _extreme(x, inst, arguments(x, inst, float_type(inst.op.mods["type"]))))


@lowers("copysign", takes=_SINGLE)
def _copysign(x: Lowering, inst: Inst) -> None:
    """The sign of a with the magnitude of b: bits, NaN payloads too."""
    w = x.w
    kind = "i32" if inst.op.mods["type"] == "f32" else "i64"
    a, b = (x.read(operand, kind) for operand in inst.op.operands[1:])
    sign = 1 << a.bits - 1
    x.write(inst.op.operands[0], w.either(w.both(a, integer(kind, sign)), w.both(b, integer(kind, sign - 1))))


@lowers("testp", takes=_SINGLE)
def _testp(x: Lowering, inst: Inst) -> None:
    w, mods = x.w, inst.op.mods
    kind, infinity, least = ("i32", 0x7F800000, 0x00800000)
    if mods["type"] == "f64":
        kind, infinity, least = "i64", 0x7FF0000000000000, 0x0010000000000000
    size = w.both(x.read(inst.op.operands[1], kind), integer(kind, (1 << 8 * (4 if kind == "i32" else 8) - 1) - 1))
    name = next(m for m in mods.values() if m not in ("f32", "f64"))
    top, bottom = integer(kind, infinity), integer(kind, least)
    tests: dict[str, Callable[[], Value]] = {
        "finite": lambda: w.compare("icmp ult", size, top),
        "infinite": lambda: w.compare("icmp eq", size, top),
        "number": lambda: w.compare("icmp ule", size, top),
        "notanumber": lambda: w.compare("icmp ugt", size, top),
        "normal": lambda: w.both(
            w.either(w.compare("icmp uge", size, bottom), w.compare("icmp eq", size, integer(kind, 0))),
            w.compare("icmp ult", size, top),
        ),
        "subnormal": lambda: w.both(w.compare("icmp ult", size, bottom), w.compare("icmp ne", size, integer(kind, 0))),
    }
    x.write(inst.op.operands[0], tests[name]())


# --- division and roots ----------------------------------------------------------------------------------------------


def _rounding(mods: Mods) -> str:
    return mods.get("rnd", "rn")


@lowers("div", takes=_SINGLE)
def _div(x: Lowering, inst: Inst) -> None:
    w, mods = x.w, inst.op.mods
    a, b = arguments(x, inst, float_type(mods["type"]))
    result = fp.arithmetic(w, "fdiv", _rounding(mods), a, b)
    if "approx" in mods:
        # For 2**126 < |b| < 2**128 the reciprocal vanishes: zero, or NaN from infinity.
        size = fp.magnitude(w, b)
        vanishes = w.both(
            w.compare("fcmp ogt", size, mathlib.number(2.0**126)),
            w.compare("fcmp olt", size, constant_of_bits("float", 0x7F800000)),
        )
        result = w.select(vanishes, w.binary("fmul", a, w.intrinsic("copysign", fp.zero("float"), b)), result)
    finish(x, inst, result)


def _is_gross(mods: Mods) -> bool:
    return mods.get("type") == "f64" and "ftz" in mods


@lowers("rcp", takes=lambda mods: _SINGLE(mods) and not _is_gross(mods))
def _rcp(x: Lowering, inst: Inst) -> None:
    kind = float_type(inst.op.mods["type"])
    (a,) = arguments(x, inst, kind)
    finish(x, inst, fp.arithmetic(x.w, "fdiv", _rounding(inst.op.mods), fp.one(kind), a))


@lowers("sqrt", takes=_SINGLE)
def _sqrt(x: Lowering, inst: Inst) -> None:
    (a,) = arguments(x, inst, float_type(inst.op.mods["type"]))
    finish(x, inst, fp.arithmetic(x.w, "sqrt", _rounding(inst.op.mods), a))


@lowers("rsqrt", takes=lambda mods: _SINGLE(mods) and not _is_gross(mods))
def _rsqrt(x: Lowering, inst: Inst) -> None:
    kind = float_type(inst.op.mods["type"])
    (a,) = arguments(x, inst, kind)
    finish(x, inst, x.w.binary("fdiv", fp.one(kind), x.w.intrinsic("sqrt", a)))


@lowers("rcp", "rsqrt", takes=_is_gross)
def _gross(x: Lowering, inst: Inst) -> None:
    """``.approx.ftz.f64`` reads and gives the upper word of a double only (PTX ISA 9.7.3.14 and 9.7.3.17)."""
    w = x.w
    a = _upper_word(x, x.read(inst.op.operands[1], "double"))
    if inst.op.opcode == "rsqrt":
        a = w.intrinsic("sqrt", a)
    x.write(inst.op.operands[0], _upper_word(x, w.binary("fdiv", fp.one("double"), a)))


def _upper_word(x: Lowering, a: Value) -> Value:
    """A double without its lower word, flushed; any NaN is 0x7fffffff00000000."""
    w, infinity = x.w, integer("i64", 0x7FF0000000000000)
    bits = w.both(w.bitcast(a, "i64"), integer("i64", ~0xFFFFFFFF))
    small = w.compare("icmp eq", w.both(bits, infinity), integer("i64", 0))
    kept = w.select(small, w.both(bits, integer("i64", 1 << 63)), bits)
    word = w.bitcast(bits, "double")
    kept = w.select(w.compare("fcmp uno", word, word), integer("i64", 0x7FFFFFFF00000000), kept)
    return w.bitcast(kept, "double")


# --- approximations --------------------------------------------------------------------------------------------------


@lowers("ex2", "lg2", "sin", "cos", "tanh", takes=typed("f32"))
def _approx(x: Lowering, inst: Inst) -> None:
    (a,) = arguments(x, inst, "float")
    finish(x, inst, _function(x, inst.op.opcode, a))


def _function(x: Lowering, opcode: str, a: Value) -> Value:
    w = x.w
    if opcode in ("sin", "cos"):
        return mathlib.sine(w, a, cosine=opcode == "cos")
    return {"ex2": mathlib.ex2, "lg2": mathlib.lg2, "tanh": mathlib.tanh}[opcode](w, a)


@lowers("ex2", "tanh", takes=lambda mods: (mods.get("type") or mods.get("atype")) in ("f16", "bf16", "f16x2", "bf16x2"))
def _approx_half(x: Lowering, inst: Inst) -> None:
    w, mods = x.w, inst.op.mods
    type = mods["type"].removesuffix("x2")

    def one(a: Value) -> Value:
        value = _function(x, inst.op.opcode, fp.widen(w, type, a))
        return fp.narrow(w, type, fp.flush(w, value) if "ftz" in mods else value)

    _apply(x, inst, one)
