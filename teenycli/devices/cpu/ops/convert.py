"""Conversion between types (PTX ISA 9.7.9, cvt): every rounding, saturation and flush among integers and floats."""

from __future__ import annotations

from teenycli.devices.cpu import fp
from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.ops.integers import extreme, pack
from teenycli.devices.cpu.program import Inst
from teenycli.devices.cpu.registry import Mods, lowers
from teenycli.devices.cpu.value import Value, Writer, integer

_FLOATS = ("f16", "bf16", "f32", "f64")
_TO_INTEGRAL = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


def _is_int(type: str) -> bool:
    return type[0] in "us" and type[1:].isdigit() and int(type[1:]) in (8, 16, 32, 64)


def _plain(mods: Mods) -> bool:
    """Scalar conversion between integers and the four float types."""
    dtype, atype = mods["dtype"], mods["atype"]
    return "pack" not in mods and all(t in _FLOATS or _is_int(t) for t in (dtype, atype))


def _load(x: Lowering, inst: Inst) -> Value:
    """The source: an integer of its width, a float or double; halves widened to float."""
    mods, w = inst.op.mods, x.w
    type, operand = mods["atype"], inst.op.operands[1]
    if _is_int(type):
        return x.read(operand, f"i{type[1:]}")
    if type in ("f16", "bf16"):
        bits = x.read(operand, "i16")
        return fp.widen(w, type, bits)
    value = x.read(operand, "float" if type == "f32" else "double")
    return fp.flush(w, value) if "ftz" in mods and type == "f32" else value


@lowers("cvt", takes=_plain)
def _cvt(x: Lowering, inst: Inst) -> None:
    mods = inst.op.mods
    dtype, atype = mods["dtype"], mods["atype"]
    a = _load(x, inst)
    if _is_int(dtype):
        result = _int_to_int(x, a, atype, dtype, mods) if _is_int(atype) else _float_to_int(x, a, dtype, mods)
        x.write(inst.op.operands[0], result, signed=dtype[0] == "s")
    elif _is_int(atype):
        x.write(inst.op.operands[0], _int_to_float(x, a, atype, dtype, mods))
    else:
        x.write(inst.op.operands[0], _float_to_float(x, a, atype, dtype, mods))


def _int_to_int(x: Lowering, a: Value, atype: str, dtype: str, mods: Mods) -> Value:
    w, to = x.w, f"i{dtype[1:]}"
    if "sat" in mods:
        a = clamp(x, a, atype[0] == "s", dtype)
    return w.resize(a, to, signed=atype[0] == "s")


def clamp(x: Lowering, a: Value, signed: bool, dtype: str) -> Value:
    """An integer held to the range of another integer type, at its own width."""
    w = x.w
    bits = int(dtype[1:])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype[0] == "s" else (0, (1 << bits) - 1)
    if signed:
        if low > -(1 << a.bits - 1):
            a = extreme(w, "max", a, integer(a.type, low), True)
        if high < (1 << a.bits - 1) - 1:
            a = extreme(w, "min", a, integer(a.type, high), True)
    elif high < (1 << a.bits) - 1:
        a = extreme(w, "min", a, integer(a.type, high), False)
    return a


def _float_to_int(x: Lowering, a: Value, dtype: str, mods: Mods) -> Value:
    """Rounded, then saturated. NaN gives 0; from a double, and to 64 bits, the top bit alone."""
    w, to = x.w, f"i{dtype[1:]}"
    whole = w.intrinsic(_TO_INTEGRAL[mods["rnd"]], a)
    result = w.convert("fptosi.sat" if dtype[0] == "s" else "fptoui.sat", whole, to)
    if to == "i64" or a.type == "double":
        result = w.select(w.compare("fcmp uno", a, a), integer(to, 1 << int(dtype[1:]) - 1), result)
    return result


def _int_to_float(x: Lowering, a: Value, atype: str, dtype: str, mods: Mods) -> Value:
    w, rnd = x.w, mods["rnd"]
    op = "sitofp" if atype[0] == "s" else "uitofp"
    if dtype in ("f32", "f64"):
        value = fp.conversion(w, op, rnd, a, "float" if dtype == "f32" else "double")
        return fp.saturate(w, value) if "sat" in mods else value
    if a.bits == 64:
        a = _sticky(x, a, signed=atype[0] == "s")
    value = w.cast(op, a, "double")
    return fp.narrow(w, dtype, fp.saturate(w, value) if "sat" in mods else value, rnd)


def _sticky(x: Lowering, a: Value, *, signed: bool) -> Value:
    """A 64-bit integer in so few bits that a double holds it; what falls away leaves its mark in the last one."""
    w = x.w
    size = w.intrinsic("abs", a, extra="i1 false") if signed else a
    large = w.compare("icmp ugt", size, integer("i64", 1 << 52))
    lost = w.compare("icmp ne", w.both(a, integer("i64", 0xFFF)), integer("i64", 0))
    marked = w.either(w.both(a, integer("i64", ~0xFFF)), w.select(lost, integer("i64", 0x1000), integer("i64", 0)))
    return w.select(large, marked, a)


def _float_to_float(x: Lowering, a: Value, atype: str, dtype: str, mods: Mods) -> Value:
    """The ISA leaves a NaN's payload open. As on GPUs (seen on sm_90) it stays where a double is narrowed and where a
    float32 is only moved or a bf16 only widened; all other conversions give the canonical NaN.
    """
    w, rnd = x.w, mods.get("rnd", "rn")
    moved = atype != "f16" and rnd not in _TO_INTEGRAL and not {"ftz", "relu"} & mods.keys()
    if "ftz" in mods and atype == "f32" and dtype == "f32" and a.type == "float":
        a = fp.flush(w, a)
    if rnd in _TO_INTEGRAL:
        a = w.intrinsic(_TO_INTEGRAL[rnd], a)
        rnd = "rn"
    a = _modify(x, a, mods)
    if dtype in ("f16", "bf16"):
        bits = fp.narrow(w, dtype, a, rnd, payload=atype == "f64")
        if "satfinite" in mods:
            bits = held_finite(w, dtype, bits)
        return bits
    if dtype == "f64":
        return w.cast("fpext", a, "double") if a.type == "float" else a
    if a.type == "double":
        a = fp.conversion(w, "fptrunc", rnd, a, "float")
        a = Value(a.type, a.text, a.uniform, False)
    elif not moved:
        a = Value(a.type, a.text, a.uniform, True)
    return fp.flush(w, a) if "ftz" in mods else a


def _modify(x: Lowering, a: Value, mods: Mods) -> Value:
    if "sat" in mods:
        a = fp.saturate(x.w, a)
    return fp.relu(x.w, a) if "relu" in mods else a


def held_finite(w: Writer, type: str, bits: Value) -> Value:
    """The bits of a half, an infinity made the largest finite number."""
    top = 0x7C00 if type == "f16" else 0x7F80
    size = w.both(bits, integer("i16", 0x7FFF))
    return w.select(w.compare("icmp eq", size, integer("i16", top)), w.sub(bits, integer("i16", 1)), bits)


# --- pairs and other formats -----------------------------------------------------------------------------------------


def _two_halves(mods: Mods) -> bool:
    return mods["dtype"] in ("f16x2", "bf16x2") and mods["atype"] == "f32" and mods.get("rnd") in ("rn", "rz")


@lowers("cvt", takes=_two_halves)
def _cvt_pair(x: Lowering, inst: Inst) -> None:
    """Two floats to a pair: a is the upper half."""
    mods = inst.op.mods
    type = mods["dtype"].removesuffix("x2")
    parts = []
    for operand in inst.op.operands[1:3]:
        bits = fp.narrow(x.w, type, _modify(x, x.read(operand, "float"), mods), mods["rnd"])
        parts.append(held_finite(x.w, type, bits) if "satfinite" in mods else bits)
    x.write(inst.op.operands[0], pack(x.w, parts[1], parts[0]))


@lowers("cvt", takes=lambda mods: mods["dtype"] == "tf32")
def _cvt_tf32(x: Lowering, inst: Inst) -> None:
    """A float32 with 10 bits of mantissa: nearest with ties away (``.rna``) or to even, or cut off."""
    w, mods = x.w, inst.op.mods
    a = _modify(x, x.read(inst.op.operands[1], "float"), mods)
    bits = w.cast("bitcast", a, "i32")
    if mods["rnd"] == "rna":
        rounded = w.add(bits, integer("i32", 0x1000))
    elif mods["rnd"] == "rn":
        even = w.both(w.binary("lshr", bits, integer("i32", 13)), integer("i32", 1))
        rounded = w.add(bits, w.add(even, integer("i32", 0xFFF)))
    else:
        rounded = bits
    result = w.both(rounded, integer("i32", ~0x1FFF))
    size = w.both(bits, integer("i32", 0x7FFFFFFF))
    result = w.select(w.compare("icmp eq", size, integer("i32", 0x7F800000)), bits, result)
    if "satfinite" in mods:
        over = w.compare("icmp eq", w.both(result, integer("i32", 0x7FFFFFFF)), integer("i32", 0x7F800000))
        sign = w.both(bits, integer("i32", 0x80000000))
        result = w.select(over, w.either(sign, integer("i32", 0x7F7FE000)), result)
    nan = w.compare("fcmp uno", a, a)
    x.write(inst.op.operands[0], w.select(nan, integer("i32", 0x7FFFE000), result))


@lowers("cvt", takes=lambda mods: "pack" in mods)
def _cvt_pack(x: Lowering, inst: Inst) -> None:
    """Two integers saturated and packed; with c, into its upper part moved down."""
    w, mods = x.w, inst.op.mods
    bits = int(mods["dtype"][1:])
    a, b = (clamp(x, x.read(o, "i32"), mods["atype"][0] == "s", mods["dtype"]) for o in inst.op.operands[1:3])
    mask = integer("i32", (1 << bits) - 1)
    pair = w.either(w.binary("shl", w.both(a, mask), integer("i32", bits)), w.both(b, mask))
    if len(inst.op.operands) > 3:
        c = x.read(inst.op.operands[3], "i32")
        pair = w.either(w.binary("shl", c, integer("i32", 2 * bits)), pair)
    x.write(inst.op.operands[0], pair)
