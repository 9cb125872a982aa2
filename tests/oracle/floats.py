"""Floating-point numbers in integers: formats, exact sums, products and quotients, and one rounding.

IEEE 754 with the rounding modes of PTX: ``rn`` nearest even, ``rna`` nearest with ties away, ``rz``, ``rm``, ``rp``.
"""

from __future__ import annotations

from math import isqrt
from typing import NamedTuple


class Format(NamedTuple):
    """A binary format; ``nan`` is what a result that is no number becomes, None where PTX does not say.

    A format without infinities has ``most``, its largest magnitude; above it are NaNs or nothing.
    """

    exponent: int
    mantissa: int
    nan: int | None
    most: int | None = None

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def bias(self) -> int:
        return (1 << self.exponent - 1) - 1

    @property
    def infinity(self) -> int:
        return (1 << self.exponent) - 1 << self.mantissa

    @property
    def sign(self) -> int:
        return 1 << self.bits - 1


#: PTX ISA, "Floating Point Instructions": a single's NaN is 0x7fffffff, a half's 0x7fff, a double's payload is open.
FORMATS = {
    "f16": Format(5, 10, 0x7FFF),
    "bf16": Format(8, 7, 0x7FFF),
    "f32": Format(8, 23, 0x7FFFFFFF),
    "f64": Format(11, 52, None),
    "e5m2": Format(5, 2, 0x7F),
    "e4m3": Format(4, 3, 0x7F, 0x7E),
    "e3m2": Format(3, 2, 0x1F, 0x1F),
    "e2m3": Format(2, 3, 0x1F, 0x1F),
    "e2m1": Format(2, 1, 7, 7),
}


class Number(NamedTuple):
    """``(-1)**sign * m * 2**e``; ``kind`` is finite, inf or nan."""

    sign: int
    m: int
    e: int = 0
    kind: str = "finite"

    @property
    def is_nan(self) -> bool:
        return self.kind == "nan"

    @property
    def is_inf(self) -> bool:
        return self.kind == "inf"

    @property
    def is_zero(self) -> bool:
        return self.kind == "finite" and self.m == 0


NAN = Number(0, 0, 0, "nan")
ONE = Number(0, 1)


def infinity(sign: int) -> Number:
    return Number(sign, 0, 0, "inf")


def decode(form: Format, bits: int) -> Number:
    sign = bits >> form.bits - 1 & 1
    exponent = bits >> form.mantissa & (1 << form.exponent) - 1
    fraction = bits & (1 << form.mantissa) - 1
    if form.most is not None and bits & ~form.sign > form.most:
        return NAN
    if form.most is None and exponent == (1 << form.exponent) - 1:
        return NAN if fraction else infinity(sign)
    if exponent == 0:
        return Number(sign, fraction, 1 - form.bias - form.mantissa)
    return Number(sign, fraction | 1 << form.mantissa, exponent - form.bias - form.mantissa)


def is_subnormal(form: Format, bits: int) -> bool:
    return not bits & form.infinity and bool(bits & ~form.sign)


def flush(form: Format, bits: int) -> int:
    """A subnormal becomes zero of its sign."""
    return bits & form.sign if is_subnormal(form, bits) else bits


def _up(rnd: str, sign: int, odd: int, rest: int, half: int) -> bool:
    """Whether rounding takes the magnitude up, ``rest`` of ``2 * half`` being cut off."""
    if rnd == "rn":
        return rest > half or (rest == half and odd == 1)
    if rnd == "rna":
        return rest >= half
    return rest != 0 and (rnd == "rm" if sign else rnd == "rp")


def encode(form: Format, value: Number, rnd: str = "rn") -> int | None:
    """The bits of a number, rounded; None for the NaN of a format that leaves its payload open."""
    if value.is_nan:
        return form.nan
    sign = form.sign if value.sign else 0
    if value.is_inf:
        return sign | (form.infinity if form.most is None else form.most)
    if value.m == 0:
        return sign
    top = value.m.bit_length() - 1 + value.e
    quantum = max(top, 1 - form.bias) - form.mantissa
    shift = quantum - value.e
    if shift <= 0:
        kept = value.m << -shift
    else:
        kept, rest = value.m >> shift, value.m & (1 << shift) - 1
        kept += _up(rnd, value.sign, kept & 1, rest, 1 << shift - 1)
    # A subnormal has no hidden bit; a carry out of the fraction moves the exponent on by itself.
    biased = quantum + form.mantissa + form.bias
    bits = kept if biased == 1 and kept >> form.mantissa == 0 else kept + (biased - 1 << form.mantissa)
    if form.most is not None:
        return sign | min(bits, form.most)
    if bits >= form.infinity:
        to_infinity = rnd in ("rn", "rna") or rnd == ("rm" if value.sign else "rp")
        bits = form.infinity if to_infinity else form.infinity - 1
    return sign | bits


def add(a: Number, b: Number, rnd: str) -> Number:
    """The exact sum; ``rnd`` decides the sign of a zero that two other numbers make."""
    if a.is_nan or b.is_nan or (a.is_inf and b.is_inf and a.sign != b.sign):
        return NAN
    if a.is_inf or b.is_inf:
        return a if a.is_inf else b
    e = min(a.e, b.e)
    total = sum((-x.m if x.sign else x.m) << x.e - e for x in (a, b))
    if total == 0:
        return Number(a.sign if a.sign == b.sign else int(rnd == "rm"), 0)
    return Number(int(total < 0), abs(total), e)


def multiply(a: Number, b: Number) -> Number:
    sign = a.sign ^ b.sign
    if a.is_nan or b.is_nan or (a.is_inf and b.is_zero) or (a.is_zero and b.is_inf):
        return NAN
    if a.is_inf or b.is_inf:
        return infinity(sign)
    return Number(sign, a.m * b.m, a.e + b.e)


def divide(a: Number, b: Number) -> Number:
    """The quotient to 130 bits, the last of which says whether anything is left."""
    sign = a.sign ^ b.sign
    if a.is_nan or b.is_nan or (a.is_inf and b.is_inf) or (a.is_zero and b.is_zero):
        return NAN
    if a.is_inf or b.is_zero:
        return infinity(sign)
    if b.is_inf or a.is_zero:
        return Number(sign, 0)
    quotient, rest = divmod(a.m << 128, b.m)
    return Number(sign, quotient << 1 | (rest != 0), a.e - b.e - 129)


def root(a: Number) -> Number:
    if a.is_nan or a.is_zero:
        return a
    if a.sign:
        return NAN
    if a.is_inf:
        return a
    m, e = (a.m, a.e) if a.e % 2 == 0 else (a.m << 1, a.e - 1)
    m <<= 128
    found = isqrt(m)
    return Number(0, found << 1 | (found * found != m), (e - 128) // 2 - 1)


def compare(a: Number, b: Number) -> int | None:
    """-1, 0 or 1; None when a NaN makes them unordered."""
    if a.is_nan or b.is_nan:
        return None
    left, right = _order(a, b), _order(b, a)
    return (left > right) - (left < right)


def _order(a: Number, b: Number) -> int:
    """An integer that orders ``a`` against ``b``, both on one scale."""
    if a.is_inf:
        size = 1 << 5000
    else:
        size = a.m << a.e - (min(a.e, b.e) if b.kind == "finite" else a.e)
        if b.is_inf:
            size = min(size, 1)
    return -size if a.sign else size


def whole(a: Number, rnd: str) -> Number:
    """Rounded to an integer by ``rni rzi rmi rpi``; the sign of a zero stays."""
    if a.kind != "finite" or a.e >= 0:
        return a
    kept, rest = a.m >> -a.e, a.m & (1 << -a.e) - 1
    return Number(a.sign, kept + _up(rnd[:2], a.sign, kept & 1, rest, 1 << -a.e - 1))
