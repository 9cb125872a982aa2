"""Floating-point arithmetic and comparison (PTX ISA 9.7.3 to 9.7.7), and the opcodes that integers and floats share.

Approximate instructions are not here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from tests.oracle import integers
from tests.oracle.floats import (
    FORMATS,
    ONE,
    Format,
    Number,
    add,
    compare,
    decode,
    divide,
    encode,
    flush,
    is_subnormal,
    multiply,
    root,
)
from tests.oracle.meaning import Bits, Meaning, Mods, means, number, packed, width

SCALARS = {"f16x2": "f16", "bf16x2": "bf16", "f32x2": "f32"}


def is_float(type: str) -> bool:
    return type.removesuffix("x2") in FORMATS


def finish(form: Format, value: Number, m: Mods) -> Bits:
    """Round, flush, saturate: what every arithmetic instruction does with its exact result."""
    if value.is_nan and "sat" in m:
        return 0
    bits = encode(form, value, m.get("rnd", "rn"))
    if bits is None:
        return None
    if "ftz" in m:
        bits = flush(form, bits)
    if "sat" in m:
        one = encode(form, ONE)
        assert one is not None
        return 0 if bits & form.sign else min(bits, one)
    if "relu" in m and bits & form.sign and not value.is_nan:
        return None if bits == form.sign else 0
    return bits


def arithmetic(m: Mods, exact: Callable[..., Number]) -> Meaning:
    """A float instruction from the exact result of its sources; packed types part by part."""
    type = m["type"]
    form = FORMATS[SCALARS.get(type, type)]
    source = FORMATS[m["atype"]] if "atype" in m else form

    def one(*args: int) -> Bits:
        if "ftz" in m:
            args = tuple(flush(form, a) for a in args)
        if source is not form:
            # Mixed precision: c is single, what stands before it is half.
            numbers = [decode(source, a) for a in args[:-1]] + [decode(form, args[-1])]
        else:
            numbers = [decode(form, a) for a in args]
        return finish(form, exact(*numbers), m)

    return packed(one, 2, form.bits) if type in SCALARS else one


def _rounding(m: Mods) -> str:
    return m.get("rnd", "rn")


def _opposite(a: Number) -> Number:
    return a._replace(sign=1 - a.sign)


@means("add")
def _add(m: Mods) -> Meaning:
    if not is_float(m["type"]):
        return integers.sum_of(m, 1)
    return arithmetic(m, lambda a, b: add(a, b, _rounding(m)))


@means("sub")
def _sub(m: Mods) -> Meaning:
    if not is_float(m["type"]):
        return integers.sum_of(m, -1)
    return arithmetic(m, lambda a, b: add(a, _opposite(b), _rounding(m)))


@means("mul")
def _mul(m: Mods) -> Meaning:
    return arithmetic(m, multiply) if is_float(m["type"]) else integers.product_of(m)


@means("fma")
def _fma(m: Mods) -> Meaning:
    def exact(a: Number, b: Number, c: Number) -> Number:
        return add(multiply(a, b), c, _rounding(m))

    if "oob" not in m:
        return arithmetic(m, exact)
    type = m["type"]
    fused = arithmetic({**m, "type": SCALARS.get(type, type)}, exact)

    def one(a: int, b: int, c: int) -> Bits:
        """A product with the NaN of what was out of bounds is nothing, and the sum with it."""
        return 0 if {a, b} & {0x7FF7, 0xFFF7} else fused(a, b, c)

    return packed(one, 2, 16) if type in SCALARS else one


@means("mad")
def _mad(m: Mods) -> Meaning:
    return _fma(m) if is_float(m["type"]) else integers.product_and_sum(m)


@means("div")
def _div(m: Mods) -> Meaning:
    return arithmetic(m, divide) if is_float(m["type"]) else integers.quotient(m)


@means("rcp")
def _rcp(m: Mods) -> Meaning:
    return arithmetic(m, lambda a: divide(ONE, a))


@means("sqrt")
def _sqrt(m: Mods) -> Meaning:
    return arithmetic(m, root)


def _sign_operation(m: Mods, change: Callable[[Format, int], int]) -> Meaning:
    """``abs`` and ``neg``; the ISA leaves open which NaN becomes of a NaN."""
    form = FORMATS[SCALARS.get(m["type"], m["type"])]

    def one(a: int) -> Bits:
        if decode(form, a).is_nan:
            return None
        return change(form, flush(form, a) if "ftz" in m else a)

    return packed(one, 2, form.bits) if m["type"] in SCALARS else one


@means("abs")
def _abs(m: Mods) -> Meaning:
    if not is_float(m["type"]):
        return integers.absolute(m)
    return _sign_operation(m, lambda form, a: a & ~form.sign)


@means("neg")
def _neg(m: Mods) -> Meaning:
    if not is_float(m["type"]):
        return integers.negative(m)
    return _sign_operation(m, lambda form, a: a ^ form.sign)


@means("copysign")
def _copysign(m: Mods) -> Meaning:
    """The sign of a on the magnitude of b."""
    sign = FORMATS[m["type"]].sign
    return lambda a, b: a & sign | b & ~sign


@means("testp")
def _testp(m: Mods) -> Meaning:
    form, op = FORMATS[m["type"]], m["op"]

    def test(bits: int) -> int:
        a = decode(form, bits)
        small = is_subnormal(form, bits)
        return int({
            "finite": a.kind == "finite", "infinite": a.is_inf, "number": not a.is_nan, "notanumber": a.is_nan,
            "normal": a.kind == "finite" and not small, "subnormal": small,
        }[op])  # fmt: skip

    return test


# --- min and max -----------------------------------------------------------------------------------------------------


@means("min")
def _min(m: Mods) -> Meaning:
    return _extreme(m, -1) if is_float(m["type"]) else integers.extreme(m, min)


@means("max")
def _max(m: Mods) -> Meaning:
    return _extreme(m, 1) if is_float(m["type"]) else integers.extreme(m, max)


def _extreme(m: Mods, wanted: int) -> Meaning:
    """A NaN gives way to a number, or with ``.NaN`` prevails; -0 lies below +0."""
    form = FORMATS[SCALARS.get(m["type"], m["type"])]

    def pick(a: int, b: int) -> Bits:
        x, y = decode(form, a), decode(form, b)
        if x.is_nan or y.is_nan:
            if "nan" in m or (x.is_nan and y.is_nan):
                return form.nan
            return b if x.is_nan else a
        order = compare(x, y) or (y.sign - x.sign)
        return a if order * wanted > 0 else b

    def one(*args: int) -> Bits:
        values = [flush(form, a) if "ftz" in m else a for a in args]
        sign = values[0] ^ values[1]
        if "abs" in m:
            values = [v & ~form.sign for v in values]
        result: Bits = values[0]
        for value in values[1:]:
            if result is None:
                return None
            result = pick(result, value)
        if result is not None and "xorsign" in m:
            if decode(form, result).is_nan:
                return form.nan
            result = result & ~form.sign | sign & form.sign
        return result

    return packed(one, 2, form.bits) if m["type"] in SCALARS else one


# --- comparison ------------------------------------------------------------------------------------------------------

_ORDERED = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
            "ge": operator.ge, "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge}  # fmt: skip


def comparison(m: Mods, type: str) -> Callable[[int, int], bool]:
    """``setp``'s comparison of two scalars. A NaN makes all but the ``u`` forms and ``nan`` false."""
    cmp = m["cmp"]
    if not is_float(type):
        value, test = number(type), _ORDERED[cmp]
        return lambda a, b: test(value(a), value(b))
    form = FORMATS[type]

    def holds(a: int, b: int) -> bool:
        if "ftz" in m:
            a, b = flush(form, a), flush(form, b)
        order = compare(decode(form, a), decode(form, b))
        if cmp in ("num", "nan"):
            return (order is None) == (cmp == "nan")
        if order is None:
            return cmp.endswith("u")
        return bool(_ORDERED[cmp.removesuffix("u")](order, 0))

    return holds


_COMBINED = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def _combined(m: Mods, value: int, p: tuple[int, ...]) -> int:
    return int(_COMBINED[m["bool"]](value, p[0])) if "bool" in m else value


@means("setp")
def _setp(m: Mods) -> Meaning:
    """p, and q the opposite comparison; of two halves each has its own."""
    type = m["type"]
    test = comparison(m, SCALARS.get(type, type))

    def one(a: int, b: int, *p: int) -> tuple[int, int]:
        if type in SCALARS:
            first, second = test(a & 0xFFFF, b & 0xFFFF), test(a >> 16, b >> 16)
        else:
            first = test(a, b)
            second = not first
        return _combined(m, int(first), p), _combined(m, int(second), p)

    return one


@means("set")
def _set(m: Mods) -> Meaning:
    """1.0 or all ones where it holds; of two halves each in its part, for an integer of 32 bits too."""
    atype, dtype = m["atype"], m["dtype"]
    test = comparison(m, SCALARS.get(atype, atype))
    part = SCALARS.get(dtype, dtype)
    bits = 16 if atype in SCALARS else width(part)
    true = encode(FORMATS[part], ONE) if part in FORMATS else integers.mask(bits)
    assert true is not None

    def one(a: int, b: int, *p: int) -> int:
        return true if _combined(m, int(test(a, b)), p) else 0

    if atype not in SCALARS:
        return one
    return lambda a, b, *p: one(a & 0xFFFF, b & 0xFFFF, *p) | one(a >> 16, b >> 16, *p) << 16


#: For ``redux``, which takes the least or greatest of many.
MEANINGS_OF_EXTREMES = {"min": _min, "max": _max}
