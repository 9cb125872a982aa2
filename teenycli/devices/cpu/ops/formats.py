"""Conversion to and from the narrow formats (PTX ISA 9.7.9, cvt): fp8, fp6, fp4, fixed point, and ue8m0 scales.

Every number of these formats is a float32 exactly, so all goes by way of float32. Stochastic rounding (``.rs``) is in
``stochastic``.
"""

from __future__ import annotations

from msgspec import Struct

from teenycli.devices.cpu import fp
from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.ops.convert import held_finite
from teenycli.devices.cpu.ops.integers import halves, pack
from teenycli.devices.cpu.program import Inst
from teenycli.devices.cpu.registry import Mods, lowers
from teenycli.devices.cpu.value import Value, Writer, constant_of_bits, integer


class Format(Struct, frozen=True):
    """Fields of a format. ``top`` is the code of its largest finite number, ``nan`` what a NaN becomes."""

    exponent: int
    mantissa: int
    bias: int
    top: int
    nan: int
    #: Codes of this magnitude and above are NaN (of e5m2, 0x7c is infinity); none are where it is out of reach.
    first_nan: int

    @property
    def sign(self) -> int:
        return 1 << self.exponent + self.mantissa

    @property
    def place(self) -> int:
        """Bits that a code takes in a pair: fp6 has two of padding."""
        return 4 if self.exponent + self.mantissa < 4 else 8


#: PTX ISA, "Alternate Floating-Point Data Formats". A NaN becomes the largest number where the format has none.
FORMATS = {
    "e4m3x2": Format(4, 3, 7, 0x7E, 0x7F, 0x7F),
    "e5m2x2": Format(5, 2, 15, 0x7B, 0x7F, 0x7D),
    "e2m1x2": Format(2, 1, 1, 0x07, 0x07, 0xFF),
    "e2m3x2": Format(2, 3, 1, 0x1F, 0x1F, 0xFF),
    "e3m2x2": Format(3, 2, 3, 0x1F, 0x1F, 0xFF),
}


def _power_bits(exponent: int) -> int:
    """The float32 bits of a power of two in the normal range."""
    return exponent + 127 << 23


def encode(x: Lowering, form: Format, a: Value) -> Value:
    """A float32 as a code, rounded to nearest even and held to the finite range (``.rn.satfinite``); an i32."""
    w = x.w
    bits = w.cast("bitcast", a, "i32")
    size = w.both(bits, integer("i32", 0x7FFFFFFF))
    drop = 23 - form.mantissa
    offset = 127 - form.bias
    top = (form.top << drop) + (offset << 23)
    held = w.intrinsic("umin", size, integer("i32", top))
    even = w.both(w.binary("lshr", held, integer("i32", drop)), integer("i32", 1))
    rounded = w.add(held, w.add(even, integer("i32", (1 << drop - 1) - 1)))
    normal = w.sub(w.binary("lshr", rounded, integer("i32", drop)), integer("i32", offset << form.mantissa))
    # Added to a number whose last bit weighs as much as the format's least, a small one is rounded to a multiple of it.
    least = 1 - form.bias - form.mantissa
    magic = constant_of_bits("float", _power_bits(least + 23))
    total = w.binary("fadd", w.cast("bitcast", held, "float"), magic)
    small = w.sub(w.cast("bitcast", total, "i32"), integer("i32", _power_bits(least + 23)))
    below = w.compare("icmp ult", held, integer("i32", _power_bits(1 - form.bias)))
    code = w.select(below, small, normal)
    negative = w.compare("icmp slt", bits, integer("i32", 0))
    code = w.select(negative, w.either(code, integer("i32", form.sign)), code)
    is_nan = w.compare("icmp ugt", size, integer("i32", 0x7F800000))
    return w.select(is_nan, integer("i32", form.nan), code)


def decode(w: Writer, form: Format, code: Value) -> Value:
    """A code (an i32, higher bits ignored) as float32, exactly; NaN is any NaN."""
    size = w.both(code, integer("i32", form.sign - 1))
    # As the bits of a float32 the number is too small by the difference of the biases, subnormals too.
    low = w.cast("bitcast", w.binary("shl", size, integer("i32", 23 - form.mantissa)), "float")
    value = w.binary("fmul", low, constant_of_bits("float", _power_bits(127 - form.bias)))
    if form.first_nan == form.top + 2:
        infinite = w.compare("icmp eq", size, integer("i32", form.top + 1))
        value = w.select(infinite, constant_of_bits("float", 0x7F800000), value)
    if form.first_nan < form.sign:
        is_nan = w.compare("icmp uge", size, integer("i32", form.first_nan))
        value = w.select(is_nan, constant_of_bits("float", 0x7FFFFFFF), value)
    negative = w.compare("icmp ne", w.both(code, integer("i32", form.sign)), integer("i32", 0))
    return w.select(negative, w.unary("fneg", value), value)


def _sources(x: Lowering, inst: Inst) -> tuple[Value, Value]:
    """The upper and the lower input as float32: two operands, or the halves of one."""
    w, mods = x.w, inst.op.mods
    if mods["atype"] == "f32":
        upper, lower = (x.read(operand, "float") for operand in inst.op.operands[1:3])
    else:
        type = mods["atype"].removesuffix("x2")
        low, high = halves(w, x.read(inst.op.operands[1], "i32"))
        upper, lower = fp.widen(w, type, high), fp.widen(w, type, low)
    return (fp.relu(w, upper), fp.relu(w, lower)) if "relu" in mods else (upper, lower)


def _write_pair(x: Lowering, inst: Inst, upper: Value, lower: Value, place: int) -> None:
    w = x.w
    pair = w.either(w.binary("shl", upper, integer("i32", place)), lower)
    x.write(inst.op.operands[0], w.cast("trunc", pair, f"i{2 * place}"))


def _to_narrow(mods: Mods) -> bool:
    return mods["dtype"] in FORMATS and mods.get("rnd") == "rn"


@lowers("cvt", takes=_to_narrow)
def _narrow(x: Lowering, inst: Inst) -> None:
    """Two numbers to a pair of codes: a, or the upper half, is the upper one."""
    form = FORMATS[inst.op.mods["dtype"]]
    upper, lower = (encode(x, form, value) for value in _sources(x, inst))
    _write_pair(x, inst, upper, lower, form.place)


@lowers("cvt", takes=lambda mods: mods["atype"] in FORMATS)
def _widen(x: Lowering, inst: Inst) -> None:
    """A pair of codes to two halves, exactly but for a scale."""
    form = FORMATS[inst.op.mods["atype"]]
    _write_halves(x, inst, [decode(x.w, form, code) for code in _codes(x, inst, form.place)])


def _codes(x: Lowering, inst: Inst, place: int) -> tuple[Value, Value]:
    """The lower and the upper code of a pair, as i32 with anything above them."""
    w = x.w
    codes = w.cast("zext", x.read(inst.op.operands[1], f"i{2 * place}"), "i32")
    return codes, w.binary("lshr", codes, integer("i32", place))


def _write_halves(x: Lowering, inst: Inst, values: list[Value]) -> None:
    """Two float32, the lower first, scaled and rounded to a pair of halves under ``.relu`` and ``.satfinite``."""
    w, mods = x.w, inst.op.mods
    type = mods["dtype"].removesuffix("x2")
    parts = []
    for k, value in enumerate(values):
        if "scaled" in mods:
            value = w.binary("fmul", value, _scale(x, inst, k))
        bits = fp.narrow(w, type, fp.relu(w, value) if "relu" in mods else value)
        parts.append(held_finite(w, type, bits) if "satfinite" in mods else bits)
    x.write(inst.op.operands[0], pack(w, *parts))


def _scale(x: Lowering, inst: Inst, part: int) -> Value:
    """The scale of the lower (0) or the upper number: a power of two as float32, or NaN."""
    w = x.w
    code = w.cast("zext", x.read(inst.op.operands[-1], "i16"), "i32")
    code = w.both(w.binary("lshr", code, integer("i32", 8)) if part else code, integer("i32", 0xFF))
    bits = w.binary("shl", code, integer("i32", 23))
    bits = w.select(w.compare("icmp eq", code, integer("i32", 0)), integer("i32", 0x400000), bits)
    bits = w.select(w.compare("icmp eq", code, integer("i32", 0xFF)), integer("i32", 0x7FFFFFFF), bits)
    return w.cast("bitcast", bits, "float")


# --- fixed point -----------------------------------------------------------------------------------------------------


@lowers("cvt", takes=lambda mods: mods["dtype"] == "s2f6x2")
def _to_fixed(x: Lowering, inst: Inst) -> None:
    """Numbers over their scales to 64ths, rounded to nearest even and held to a byte; a NaN is the largest."""
    w, mods = x.w, inst.op.mods
    codes = []
    for part, value in zip((1, 0), _sources(x, inst), strict=True):
        if "scaled" in mods:
            value = w.binary("fdiv", value, _scale(x, inst, part))
        whole = w.intrinsic("roundeven", w.binary("fmul", value, constant_of_bits("float", _power_bits(6))))
        code = w.resize(w.convert("fptosi.sat", whole, "i8"), "i32")
        codes.append(w.select(w.compare("fcmp uno", value, value), integer("i32", 0x7F), code))
    _write_pair(x, inst, codes[0], codes[1], 8)


@lowers("cvt", takes=lambda mods: mods["atype"] == "s2f6x2")
def _from_fixed(x: Lowering, inst: Inst) -> None:
    w = x.w
    values = []
    for code in _codes(x, inst, 8):
        whole = w.cast("sitofp", w.resize(code, "i8"), "float")
        values.append(w.binary("fmul", whole, constant_of_bits("float", _power_bits(-6))))
    _write_halves(x, inst, values)


# --- scales: powers of two -------------------------------------------------------------------------------------------


@lowers("cvt", takes=lambda mods: mods["dtype"] == "ue8m0x2")
def _to_scale(x: Lowering, inst: Inst) -> None:
    """The exponent of a magnitude, rounded down (``.rz``) or up (``.rp``). NaN, and what is too large, is 0xff."""
    w, mods = x.w, inst.op.mods
    codes = []
    for value in _sources(x, inst):
        size = w.both(w.cast("bitcast", value, "i32"), integer("i32", 0x7FFFFFFF))
        code = w.binary("lshr", size, integer("i32", 23))
        if mods["rnd"] == "rp":
            # Code 0 is 2**-127, whose float32 bits are 0x400000; up to there nothing is rounded up.
            rest = w.compare("icmp ne", w.both(size, integer("i32", 0x7FFFFF)), integer("i32", 0))
            inside = w.both(
                w.compare("icmp ugt", size, integer("i32", 0x400000)),
                w.compare("icmp ult", size, integer("i32", 0x7F800000)),
            )
            code = w.add(code, w.cast("zext", w.both(rest, inside), "i32"))
        if "satfinite" in mods:
            number = w.compare("icmp ule", size, integer("i32", 0x7F800000))
            code = w.select(number, w.intrinsic("umin", code, integer("i32", 0xFE)), code)
        codes.append(code)
    _write_pair(x, inst, codes[0], codes[1], 8)


@lowers("cvt", takes=lambda mods: mods["atype"] == "ue8m0x2")
def _from_scale(x: Lowering, inst: Inst) -> None:
    """Scales to bf16: 2**-127 is subnormal there."""
    w = x.w
    codes = x.read(inst.op.operands[1], "i16")
    parts = []
    for code in (w.both(codes, integer("i16", 0xFF)), w.binary("lshr", codes, integer("i16", 8))):
        bits = w.binary("shl", code, integer("i16", 7))
        bits = w.select(w.compare("icmp eq", code, integer("i16", 0)), integer("i16", 0x40), bits)
        bits = w.select(w.compare("icmp eq", code, integer("i16", 0xFF)), integer("i16", 0x7FFF), bits)
        parts.append(bits)
    x.write(inst.op.operands[0], pack(w, *parts))
