"""Stochastic rounding of float32 (PTX ISA 9.7.9, cvt with ``.rs``): random bits added to what is cut off.

The ISA names the bits of ``rbits`` that each input takes; how a pair of inputs shares its 16, and that they meet the
uppermost of the bits that are cut off, was read from hardware (docs/cpu-accuracy.md).
"""

from __future__ import annotations

from msgspec import Struct

from teenycli.devices.cpu import fp
from teenycli.devices.cpu.lower import Lowering
from teenycli.devices.cpu.ops.formats import FORMATS
from teenycli.devices.cpu.ops.integers import pack
from teenycli.devices.cpu.program import Inst
from teenycli.devices.cpu.registry import Mods, lowers
from teenycli.devices.cpu.value import Value, integer

#: Exponent and mantissa bits of the halves, and the random bits that one takes.
_HALVES = {"f16x2": (5, 10, 13), "bf16x2": (8, 7, 16)}


class _Target(Struct, frozen=True):
    """A format, the random bits for one number of it, and the codes of what is too large and of NaN."""

    exponent: int
    mantissa: int
    random: int
    top: int
    nan: int


def _magnitude(x: Lowering, target: _Target, size: Value, random: Value) -> Value:
    """The code, as an i32 without a sign, of the float32 magnitude that has the bits ``size``; not of NaN."""
    w = x.w
    field = w.binary("lshr", size, integer("i32", 23))
    hidden = w.compare("icmp ne", field, integer("i32", 0))
    fraction = w.both(size, integer("i32", 0x7FFFFF))
    significand = w.select(hidden, w.either(fraction, integer("i32", 1 << 23)), fraction)
    # The exponent fields at which float32 and the format become subnormal.
    field = w.intrinsic("umax", field, integer("i32", 1))
    least = integer("i32", 128 - ((1 << target.exponent - 1) - 1))
    held = w.intrinsic("umax", field, least)
    # All that is cut off but the bits that meet random ones; of 24 bits a shift by 31 leaves nothing.
    drop = w.add(w.sub(held, field), integer("i32", 23 - target.mantissa - target.random))
    kept = w.binary("lshr", significand, w.intrinsic("umin", drop, integer("i32", 31)))
    rounded = w.binary("lshr", w.add(kept, random), integer("i32", target.random))
    code = w.add(rounded, w.binary("shl", w.sub(held, least), integer("i32", target.mantissa)))
    return w.intrinsic("umin", code, integer("i32", target.top))


def _rounded(x: Lowering, target: _Target, a: Value, random: Value) -> Value:
    w = x.w
    bits = w.cast("bitcast", a, "i32")
    size = w.both(bits, integer("i32", 0x7FFFFFFF))
    code = _magnitude(x, target, size, random)
    sign = integer("i32", 1 << target.exponent + target.mantissa)
    code = w.select(w.compare("icmp slt", bits, integer("i32", 0)), w.either(code, sign), code)
    return w.select(w.compare("icmp ugt", size, integer("i32", 0x7F800000)), integer("i32", target.nan), code)


def _inputs(x: Lowering, inst: Inst) -> list[Value]:
    """The numbers to be rounded, that of the result's uppermost part first."""
    sources = [item for operand in inst.op.operands[1:-1] for item in x.elements(operand)]
    values = [x.read(source, "float") for source in sources]
    return [fp.relu(x.w, value) for value in values] if "relu" in inst.op.mods else values


@lowers("cvt", takes=lambda mods: mods.get("rnd") == "rs" and mods["dtype"] in _HALVES)
def _pair(x: Lowering, inst: Inst) -> None:
    """Two floats to halves; a takes its random bits from the upper half of ``rbits``."""
    w, mods = x.w, inst.op.mods
    exponent, mantissa, random = _HALVES[mods["dtype"]]
    infinity = ((1 << exponent) - 1) << mantissa
    target = _Target(exponent, mantissa, random, infinity - ("satfinite" in mods), 0x7FFF)
    rbits = x.read(inst.op.operands[-1], "i32")
    randoms = (
        w.both(part, integer("i32", (1 << random) - 1)) for part in (w.binary("lshr", rbits, integer("i32", 16)), rbits)
    )
    upper, lower = (_rounded(x, target, a, r) for a, r in zip(_inputs(x, inst), randoms, strict=True))
    x.write(inst.op.operands[0], pack(w, w.cast("trunc", lower, "i16"), w.cast("trunc", upper, "i16")))


def _narrow_four(mods: Mods) -> bool:
    return mods.get("rnd") == "rs" and mods["dtype"].endswith("x4")


@lowers("cvt", takes=_narrow_four)
def _four(x: Lowering, inst: Inst) -> None:
    """Four floats to a code each, a the uppermost."""
    w = x.w
    form = FORMATS[inst.op.mods["dtype"].replace("x4", "x2")]
    target = _Target(form.exponent, form.mantissa, 16, form.top, form.nan)
    randoms = _shared_out(x, x.read(inst.op.operands[-1], "i32"), by_bytes=form.place == 4)
    total = integer("i32", 0)
    for a, random in zip(_inputs(x, inst), randoms, strict=True):
        total = w.either(w.binary("shl", total, integer("i32", form.place)), _rounded(x, target, a, random))
    x.write(inst.op.operands[0], w.resize(total, f"i{4 * form.place}"))


def _shared_out(x: Lowering, rbits: Value, *, by_bytes: bool) -> list[Value]:
    """The 16 random bits of each of four inputs: a pair shares its own, the first of it from the other end.

    The first pair has the upper half, or ``by_bytes`` the upper byte of either half.
    """
    w = x.w
    low = integer("i32", 0xFFFF)
    if by_bytes:
        # Bytes 3 and 1 become the upper half, 2 and 0 the lower.
        middle = w.both(w.differ(rbits, w.binary("lshr", rbits, integer("i32", 8))), integer("i32", 0xFF00))
        rbits = w.differ(w.differ(rbits, middle), w.binary("shl", middle, integer("i32", 8)))
    first, second = w.binary("lshr", rbits, integer("i32", 16)), w.both(rbits, low)
    backward = w.intrinsic("bitreverse", rbits)
    return [w.both(backward, low), first, w.binary("lshr", backward, integer("i32", 16)), second]
