"""Approximate functions of float32 as short polynomials on vectors, within the errors that the PTX ISA allows.

May import ``fp`` and ``value``.
"""

from __future__ import annotations

from collections.abc import Sequence

from teenycli.devices.cpu import fp
from teenycli.devices.cpu.value import Value, Writer, constant_of_bits, floating, integer


def number(value: float) -> Value:
    return floating("float", value)


def horner(w: Writer, t: Value, coefficients: Sequence[float]) -> Value:
    """A polynomial, highest coefficient first."""
    total = number(coefficients[0])
    for coefficient in coefficients[1:]:
        total = w.intrinsic("fma", total, t, number(coefficient))
    return total


#: 2**f on [-1/2, 1/2], fitted for least relative error with p(0) = 1.
_EXP2 = (1.5353362e-4, 1.3398874e-3, 9.6184373e-3, 5.5503324e-2, 2.4022648e-1, 6.9314720e-1, 1.0)


def ex2(w: Writer, a: Value) -> Value:
    """2**a, subnormal results included. Relative error below 2**-22 (PTX ISA, "ex2": 2**-22.5 from float rounding)."""
    inside = w.intrinsic("minnum", w.intrinsic("maxnum", a, number(-160.0)), number(129.0))
    whole = w.intrinsic("roundeven", inside)
    power = horner(w, w.binary("fsub", inside, whole), _EXP2)
    count = w.cast("fptosi", whole, "i32")
    half = w.binary("ashr", count, integer("i32", 1))
    for part in (half, w.sub(count, half)):
        power = w.binary("fmul", power, _power_of_two(w, part))
    return w.select(w.compare("fcmp uno", a, a), a, power)


def _power_of_two(w: Writer, count: Value) -> Value:
    return w.cast("bitcast", w.binary("shl", w.add(count, integer("i32", 127)), integer("i32", 23)), "float")


#: 2 / ln 2 times the series of atanh, in the square of its argument.
_ATANH = tuple(2.8853900817779268 / n for n in (11, 9, 7, 5, 3, 1))


def lg2(w: Writer, a: Value) -> Value:
    """Base-2 logarithm. With s = (m - 1) / (m + 1), log2 m is a series in odd powers of s, |s| < 0.172."""
    tiny = w.compare("fcmp olt", a, constant_of_bits("float", 0x00800000))
    scaled = w.select(tiny, w.binary("fmul", a, number(2.0**24)), a)
    bits = w.cast("bitcast", scaled, "i32")
    # Mantissas from sqrt(1/2) to sqrt(2), so that the logarithm is near zero where the argument is near one.
    shifted = w.sub(bits, integer("i32", 0x3F3504F3))
    exponent = w.binary("ashr", shifted, integer("i32", 23))
    mantissa = w.cast("bitcast", w.sub(bits, w.binary("shl", exponent, integer("i32", 23))), "float")
    s = w.binary("fdiv", w.binary("fsub", mantissa, number(1.0)), w.binary("fadd", mantissa, number(1.0)))
    fraction = w.binary("fmul", s, horner(w, w.binary("fmul", s, s), _ATANH))
    whole = w.cast("sitofp", w.sub(exponent, w.select(tiny, integer("i32", 24), integer("i32", 0))), "float")
    result = w.binary("fadd", fraction, whole)
    infinity = constant_of_bits("float", 0x7F800000)
    result = w.select(w.compare("fcmp oeq", a, infinity), a, result)
    result = w.select(w.compare("fcmp oeq", a, number(0.0)), constant_of_bits("float", 0xFF800000), result)
    bad = w.compare("fcmp ult", a, number(0.0))
    return w.select(bad, constant_of_bits("float", 0x7FFFFFFF), result)


_SIN = (-1.9515296e-4, 8.3321609e-3, -1.6666655e-1)
_COS = (2.4433157e-5, -1.3887316e-3, 4.1666646e-2, -0.5)
#: Pi/2 in three parts, the first two short, so that multiples of them are exact.
_HALF_PI = (1.5703125, 4.837512969970703e-4, 7.549790126404332e-8)


def sine(w: Writer, a: Value, *, cosine: bool) -> Value:
    """Sine or cosine: the argument less the nearest multiple of pi/2, then one of two polynomials by quadrant."""
    turns = w.intrinsic("roundeven", w.binary("fmul", a, number(0.6366197723675814)))
    r = a
    for part in _HALF_PI:
        r = w.intrinsic("fma", turns, number(-part), r)
    square = w.binary("fmul", r, r)
    cube = w.binary("fmul", square, r)
    sin = w.intrinsic("fma", cube, horner(w, square, _SIN), r)
    cos = w.intrinsic("fma", square, horner(w, square, _COS), number(1.0))
    quadrant = w.convert("fptosi.sat", turns, "i32")
    if cosine:
        quadrant = w.add(quadrant, integer("i32", 1))
    odd = w.compare("icmp ne", w.both(quadrant, integer("i32", 1)), integer("i32", 0))
    value = w.select(odd, cos, sin)
    flip = w.binary("shl", w.both(quadrant, integer("i32", 2)), integer("i32", 30))
    return _raw(w.cast("bitcast", w.differ(w.cast("bitcast", value, "i32"), flip), "float"))


def _raw(a: Value) -> Value:
    return Value(a.type, a.text, a.uniform, True)


_TANH = (-17.0 / 315.0, 2.0 / 15.0, -1.0 / 3.0)


def tanh(w: Writer, a: Value) -> Value:
    """Hyperbolic tangent, relative error below 2**-11: a series near zero, else by way of 2**x."""
    square = w.binary("fmul", a, a)
    near = w.intrinsic("fma", w.binary("fmul", square, a), horner(w, square, _TANH), a)
    power = ex2(w, w.binary("fmul", fp.magnitude(w, a), number(2.8853900817779268)))
    far = w.binary("fsub", number(1.0), w.binary("fdiv", number(2.0), w.binary("fadd", power, number(1.0))))
    far = w.intrinsic("copysign", far, a)
    return w.select(w.compare("fcmp olt", fp.magnitude(w, a), number(0.25)), near, far)
