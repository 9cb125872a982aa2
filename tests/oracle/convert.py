"""Conversion between types (PTX ISA 9.7.9, "cvt")."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from tests.oracle.floating import SCALARS, is_float
from tests.oracle.floats import FORMATS, NAN, ONE, Format, Number, decode, encode, flush, whole
from tests.oracle.meaning import Bits, Meaning, Mods, clamped, means, number, width

#: tf32 lies in the upper bits of a single: 13 bits of the fraction are not there.
_TF32 = Format(8, 10, 0x3FFFF)


#: Pairs of small floats: the bits that each has in the register.
_SMALL = {"e5m2x2": 8, "e4m3x2": 8, "e3m2x2": 8, "e2m3x2": 8, "e2m1x2": 4, "s2f6x2": 8}


@means("cvt")
def _cvt(m: Mods) -> Meaning:
    dtype, atype = m["dtype"], m["atype"]
    if "pack" in m:
        return _pack(m)
    if dtype == "tf32":
        return lambda a: _to_tf32(m, a)
    if m.get("rnd") == "rs":
        return _two_by_chance(m) if dtype in SCALARS else _four_by_chance(m)
    if dtype in _SMALL or atype in _SMALL or atype == "ue8m0x2":
        return _small(m)
    if dtype in SCALARS and atype == "f32":
        half = FORMATS[SCALARS[dtype]]
        return lambda a, b: _pair(_to_half(m, half, a), _to_half(m, half, b))
    if is_float(dtype):
        return _to_float(m)
    if is_float(atype):
        return _float_to_int(m)
    value, bits = number(atype), width(dtype)
    if "sat" in m:
        return lambda a: clamped(value(a), dtype) & (1 << bits) - 1
    return lambda a: value(a) & (1 << bits) - 1


def _float_to_int(m: Mods) -> Meaning:
    """Out of range it clamps; a NaN is zero, or the top bit alone where a double or 64 bits are in it."""
    dtype, atype = m["dtype"], m["atype"]
    form, bits = FORMATS[atype], width(m["dtype"])
    nan = 1 << bits - 1 if atype == "f64" or bits == 64 else 0

    def convert(a: int) -> int:
        x = decode(form, flush(form, a) if "ftz" in m else a)
        if x.is_nan:
            return nan
        if x.is_inf:
            value = 1 << 2000
        else:
            rounded = whole(x, m["rnd"])
            value = rounded.m << max(rounded.e, 0)
        return clamped(-value if x.sign else value, dtype) & (1 << bits) - 1

    return convert


def _to_float(m: Mods) -> Meaning:
    """Any number to a scalar float. ``.ftz`` acts on singles only."""
    dtype, atype = m["dtype"], m["atype"]
    form = FORMATS[dtype]

    def convert(a: int) -> Bits:
        if is_float(atype):
            if "sat" not in m and decode(FORMATS[atype], a).is_nan:
                return _nan(m, a)
            x = decode(FORMATS[atype], flush(FORMATS[atype], a) if "ftz" in m and atype == "f32" else a)
        else:
            value = number(atype)(a)
            x = Number(int(value < 0), abs(value))
        rnd = m.get("rnd", "rn")
        if rnd.endswith("i"):
            x, rnd = whole(x, rnd), "rn"
        bits = _modified(m, form, x, rnd)
        return flush(form, bits) if "ftz" in m and dtype == "f32" and bits is not None else bits

    return convert


def _nan(m: Mods, a: int) -> Bits:
    """A NaN converted. Its payload is open: as GPUs do it, where the conversion is not arithmetic it stays."""
    dtype, atype, is_plain = m["dtype"], m["atype"], not {"ftz", "relu"} & m.keys() and m.get("rnd", "rn")[-1] != "i"
    if dtype == "f64":
        return None
    if dtype == "f32" and atype == "f64":
        return a >> 32 & 1 << 31 | 0x7FC00000 | a >> 29 & 0x3FFFFF
    if dtype in ("f16", "bf16") and atype == "f64":
        quiet, shift = (0x7E00, 42) if dtype == "f16" else (0x7FC0, 45)
        return a >> 48 & 1 << 15 | quiet | a >> shift & 0x7FFF - quiet
    if dtype == "f32" and atype in ("f32", "bf16") and is_plain:
        return a if atype == "f32" else a << 16
    return FORMATS[dtype].nan


def _to_half(m: Mods, form: Format, a: int) -> Bits:
    return _modified(m, form, decode(FORMATS["f32"], a), m["rnd"])


def _modified(m: Mods, form: Format, x: Number, rnd: str) -> Bits:
    """Rounded under ``.sat``, ``.satfinite`` and ``.relu``."""
    if "sat" in m and (x.is_nan or x.sign):
        return 0
    bits = encode(form, x, rnd)
    if bits is None:
        return None
    if "sat" in m:
        one = encode(form, ONE)
        assert one is not None
        return min(bits, one)
    if "relu" in m and x.sign and not x.is_nan:
        return None if bits == form.sign else 0
    if "satfinite" in m and form.most is None and bits & ~form.sign == form.infinity:
        bits -= 1
    return bits


def _small(m: Mods) -> Meaning:
    """Two floats to a pair of small ones, or a pair of small ones to two halves; a, or the upper one, comes first."""
    dtype, atype = m["dtype"], m["atype"]
    if atype == "ue8m0x2":
        return _both(lambda a, _: 0x7FFF if a == 0xFF else a << 7 or 0x40, 8, 16)
    if atype in _SMALL:
        half, read = FORMATS[dtype.removesuffix("x2")], _reader(atype)

        def widened(a: int, scale: int) -> Bits:
            number = read(a)
            return None if number is None else _modified(m, half, _times(number, scale), "rn")

        return _both(widened, _SMALL[atype], 16)
    write, room = _writer(m), _SMALL[dtype]
    if atype in SCALARS:
        half = FORMATS[SCALARS[atype]]
        return _both(lambda a, scale: write(_times(decode(half, a), scale, -1)), 16, room)

    def two(a: int, b: int, scales: int = _ONES) -> Bits:
        pairs = ((a, scales >> 8), (b, scales & 0xFF))
        upper, lower = (write(_times(decode(FORMATS["f32"], x), scale, -1)) for x, scale in pairs)
        return None if upper is None or lower is None else upper << room | lower

    return two


#: A pair of scales that change nothing.
_ONES = 0x7F7F


def _times(x: Number, scale: int, sign: int = 1) -> Number:
    """A number times a ue8m0 scale, or over it."""
    return NAN if scale == 0xFF else x._replace(e=x.e + sign * (scale - 127))


def _reader(atype: str) -> Callable[[int], Number | None]:
    """From a code to its number. The two bits above six are to be zero."""
    if atype == "s2f6x2":
        return lambda a: Number(a >> 7, 256 - a if a >> 7 else a, -6)
    form = FORMATS[atype.removesuffix("x2")]
    return lambda a: None if a >> form.bits else decode(form, a)


def _writer(m: Mods) -> Callable[[Number], Bits]:
    if m["dtype"] != "s2f6x2":
        form = FORMATS[m["dtype"].removesuffix("x2")]
        return lambda x: _modified(m, form, x, "rn")

    def fixed(x: Number) -> int:
        """64ths in a byte, two's complement; the most positive one for a NaN."""
        if x.is_nan:
            return 0x7F
        count = whole(x._replace(e=x.e + 6), "rni")
        size = 1 << 9 if x.is_inf else count.m << max(count.e, 0)
        return 0 if x.sign and "relu" in m else clamped(-size if x.sign else size, "s8") & 0xFF

    return fixed


def _by_chance(m: Mods, form: Format, a: int, random: int, count: int) -> Bits:
    """Rounded away from zero when ``random`` of ``2**count`` and the part of a unit that is cut off reach a whole.

    Of that part no more bits count than there are random ones.
    """
    x = decode(FORMATS["f32"], a)
    if x.kind == "finite" and x.m:
        unit = max(x.m.bit_length() - 1 + x.e, 1 - form.bias) - form.mantissa
        size = Fraction(x.m) * Fraction(2) ** (x.e - unit)
        whole_units = size.numerator // size.denominator
        rest = size - whole_units
        up = int(rest * 2**count) + random >= 2**count
        x = Number(x.sign, whole_units + up, unit)
    return _modified(m, form, x, "rn")


def _two_by_chance(m: Mods) -> Meaning:
    form = FORMATS[SCALARS[m["dtype"]]]
    count = 23 - form.mantissa

    def two(a: int, b: int, rbits: int) -> Bits:
        upper, lower = (_by_chance(m, form, x, r & (1 << count) - 1, count) for x, r in ((a, rbits >> 16), (b, rbits)))
        return _pair(upper, lower)

    return two


def _four_by_chance(m: Mods) -> Meaning:
    """Sixteen random bits for each of a, b, e and f; b and f have them with the highest first, a and e the same ones
    with the lowest first.
    """
    form = FORMATS[m["dtype"].removesuffix("x4")]
    room = _SMALL[f"{m['dtype'].removesuffix('x4')}x2"]

    def four(a: int, b: int, e: int, f: int, rbits: int) -> Bits:
        byte = [rbits >> 8 * k & 0xFF for k in range(4)]
        first, second = ((3, 1), (2, 0)) if room == 4 else ((3, 2), (1, 0))
        total = 0
        for pair, (high, low) in (((a, b), first), ((e, f), second)):
            forward = f"{byte[high]:08b}{byte[low]:08b}"
            for x, digits in zip(pair, (forward[::-1], forward), strict=True):
                code = _by_chance(m, form, x, int(digits, 2), 16)
                if code is None:
                    return None
                total = total << room | code
        return total

    return four


def _both(one: Callable[[int, int], Bits], given: int, taken: int) -> Meaning:
    """An operation from each of two parts of ``given`` bits, with its scale, to one of ``taken``."""

    def both(a: int, scales: int = _ONES) -> Bits:
        mask = (1 << given) - 1
        upper, lower = one(a >> given & mask, scales >> 8), one(a & mask, scales & 0xFF)
        return None if upper is None or lower is None else upper << taken | lower

    return both


def _to_tf32(m: Mods, a: int) -> Bits:
    bits = _modified(m, _TF32, decode(FORMATS["f32"], a), m["rnd"])
    if bits is None:
        return None
    if bits == _TF32.nan:
        return None if m["rnd"] == "rna" else 0x7FFFE000
    return bits << 13


def _pair(upper: Bits, lower: Bits) -> Bits:
    return None if upper is None or lower is None else upper << 16 | lower


def _pack(m: Mods) -> Meaning:
    """Two integers held to a small type; the rest of the result is what c has below, moved up."""
    dtype = m["dtype"]
    bits = width(dtype)

    def pack(a: int, b: int, c: int = 0) -> int:
        upper, lower = (clamped(number("s32")(x), dtype) & (1 << bits) - 1 for x in (a, b))
        return (c << 2 * bits | upper << bits | lower) & 0xFFFFFFFF

    return pack
