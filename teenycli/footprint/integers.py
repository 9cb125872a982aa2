"""What integer instructions make of known operands (PTX ISA 9.7.1, 9.7.2, 9.7.6, 9.7.8 and 9.7.9), over all lanes.

``meaning_of`` is all that the walk needs. An instruction that is not here has a result that is not known. May import
``footprint.lanes`` and ``ptx.model``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from teenycli.footprint.lanes import SIGNED, UNSIGNED, Array, resize

#: From the operands' bits, each as wide as the form types it; and from the modifiers, where these matter.
Plain = Callable[[Sequence[Array]], Array]


class Typed(Protocol):
    def __call__(self, x: Sequence[Array], mods: Mapping[str, str]) -> Array: ...


def meaning_of(opcode: str, mods: Mapping[str, str]) -> Plain | None:
    """How the bits of the (first) result come about; None where the instruction has no meaning here."""
    if any(mod in mods for mod in ("cc", "sat", "relu", "rnd", "ftz", "satfinite", "scaled")):
        return None
    if opcode == "mov":
        return lambda x: x[0]
    if opcode == "prmt" and "mode" in mods:
        return None
    kind = mods.get("type") or mods.get("dtype") or ""
    if kind != "pred" and (not kind or kind[0] not in "bus" or not kind[1:].isdigit()):
        return None
    if opcode in _PLAIN:
        return _PLAIN[opcode]
    return partial(_TYPED[opcode], mods=mods) if opcode in _TYPED else None


def width_of(kind: str) -> int:
    """Width in bits of an integer, bit or predicate type."""
    return 1 if kind == "pred" else int(kind[1:])


def _signed(bits: Array) -> Array:
    return bits.view(SIGNED[bits.dtype.itemsize * 8])


def typed(bits: Array, mods: Mapping[str, str]) -> Array:
    """Bits as the instruction's type has them: with a sign or without."""
    return _signed(bits) if mods["type"][0] == "s" else bits


def _bits(values: Array) -> Array:
    return values.view(UNSIGNED[values.dtype.itemsize * 8]) if values.dtype.kind == "i" else values


def _wider(bits: Array, mods: Mapping[str, str]) -> Array:
    return resize(bits, bits.dtype.itemsize * 16, mods["type"][0] == "s")


def _product(a: Array, b: Array, mods: Mapping[str, str]) -> Array:
    mode = mods.get("mode", "lo")
    if mode == "lo":
        return a * b
    width = a.dtype.itemsize * 8
    if mode == "hi" and width == 64:
        return _high(a, b, mods["type"][0] == "s")
    whole = _wider(a, mods) * _wider(b, mods)
    return whole if mode == "wide" else resize(whole >> np.uint64(width).astype(whole.dtype), width)


def _high(a: Array, b: Array, signed: bool) -> Array:
    """The high 64 bits of the product of 64-bit numbers."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    middle = a1 * b0 + (a0 * b0 >> half)
    across = a0 * b1 + (middle & low)
    high: Array = a1 * b1 + (middle >> half) + (across >> half)
    if signed:
        high -= np.where(_signed(a) < 0, b, np.uint64(0)) + np.where(_signed(b) < 0, a, np.uint64(0))
    return high


def _divide(x: Sequence[Array], mods: Mapping[str, str]) -> Array:
    """Towards zero; by zero all ones, as GPUs do."""
    a, b = x
    zero = b == 0
    divisor = np.where(zero, b.dtype.type(1), b)
    if mods["type"][0] == "u":
        quotient = a // divisor
    else:
        p, q = _signed(a), _signed(divisor)
        magnitude = _bits(np.abs(p)) // _bits(np.abs(q))  # the least number is its own magnitude, read unsigned
        quotient = np.where((p < 0) != (q < 0), -_signed(magnitude), _signed(magnitude)).view(a.dtype)
    ones = b.dtype.type((1 << 8 * b.dtype.itemsize) - 1)
    return np.where(zero, ones, quotient)


def _remainder(x: Sequence[Array], mods: Mapping[str, str]) -> Array:
    quotient = _divide(x, mods)
    return np.where(x[1] == 0, quotient, x[0] - quotient * x[1])


def _shift_left(x: Sequence[Array]) -> Array:
    a, by = x
    width = a.dtype.itemsize * 8
    moved: Array
    if len(by) == 1 and by[0] < width:
        moved = a << by.astype(a.dtype)
        return moved
    moved = np.where(by < width, a << np.minimum(by, width - 1).astype(a.dtype), a.dtype.type(0))
    return moved


def _shift_right(x: Sequence[Array], mods: Mapping[str, str]) -> Array:
    a, by = x
    width = a.dtype.itemsize * 8
    moved: Array
    if len(by) == 1 and by[0] < width and mods["type"][0] != "s":
        moved = a >> by.astype(a.dtype)
        return moved
    inside = np.minimum(by, width - 1).astype(a.dtype)
    if mods["type"][0] == "s":
        return _bits(_signed(a) >> _signed(inside))
    moved = np.where(by < width, a >> inside, a.dtype.type(0))
    return moved


def _compare(x: Sequence[Array], mods: Mapping[str, str]) -> Array:
    a, b = (x[0], x[1]) if mods["type"] == "pred" else (typed(x[0], mods), typed(x[1], mods))
    outcome: Array = _COMPARISONS[mods["cmp"]](a, b)
    return outcome


_COMPARISONS: dict[str, np.ufunc] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip


def _place(bits: Array, width: int) -> Array:
    """A position or length in a field. Past 255 the ISA leaves it open: as GPUs do it, forms of 32 bits cut it off and
    those of 64 hold it."""
    cut: Array = bits & np.uint32(0xFF) if width == 32 else np.minimum(bits, np.uint32(0xFF))
    return cut


def _field(x: Sequence[Array], mods: Mapping[str, str]) -> Array:
    """bfe: bits from ``b`` on, ``c`` of them, extended with the sign or zeros."""
    a, width = x[0], x[0].dtype.itemsize * 8
    start, wanted = (np.minimum(_place(v, width), width).astype(a.dtype) for v in x[1:3])
    length = np.minimum(wanted, width - start)
    up = (width - start - length).astype(a.dtype)
    high = np.where(up < width, a << np.minimum(up, width - 1).astype(a.dtype), 0).astype(a.dtype)
    down = np.minimum(width - length, width - 1).astype(a.dtype)
    zero = a.dtype.type(0)
    if mods["type"][0] == "u":
        unsigned: Array = np.where(length == 0, zero, high >> down)
        return unsigned
    # Past the end there is the sign.
    beyond = np.where((wanted > 0) & (_signed(a) < 0), ~zero, zero)
    return np.where(length == 0, beyond, _bits(_signed(high) >> _signed(down)))


def _insert(x: Sequence[Array]) -> Array:
    """bfi: the low ``length`` bits of ``a`` in place of those of ``b`` from ``start`` on."""
    a, b, width = x[0], x[1], x[0].dtype.itemsize * 8
    start, length = (_place(v, width).astype(np.uint64) for v in x[2:4])
    ones = np.uint64((1 << width) - 1)
    field = np.where(length >= 64, ones, (np.uint64(1) << np.minimum(length, np.uint64(63))) - np.uint64(1))
    mask = np.where(start < width, field << np.minimum(start, np.uint64(63)), np.uint64(0)) & ones
    moved = a.astype(np.uint64) << np.minimum(start, np.uint64(63))
    return (b.astype(np.uint64) & ~mask | moved & mask).astype(a.dtype)


def _lop3(x: Sequence[Array]) -> Array:
    a, b, c = x[:3]
    table = int(x[3].flat[0])
    result: Array = np.zeros(1, a.dtype)
    for k in range(8):
        if table >> k & 1:
            result = result | (a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c)
    return result


def _funnel(x: Sequence[Array], mods: Mapping[str, str]) -> Array:
    """shf: 64 bits, ``b`` above ``a``, moved to the left (its high word) or right (its low one)."""
    whole = x[1].astype(np.uint64) << np.uint64(32) | x[0].astype(np.uint64)
    by = x[2] & np.uint32(31) if mods["mode"] == "wrap" else np.minimum(x[2], np.uint32(32))
    if mods["op"] == "l":
        return (whole >> (np.uint64(32) - by.astype(np.uint64))).astype(np.uint32)
    return (whole >> by.astype(np.uint64)).astype(np.uint32)


def _convert(x: Sequence[Array], mods: Mapping[str, str]) -> Array:
    return resize(x[0], width_of(mods["dtype"]), mods["atype"][0] == "s")


def _permute(x: Sequence[Array]) -> Array:
    """prmt: each byte of the result chosen among eight, or that one's sign."""
    whole = x[1].astype(np.uint64) << np.uint64(32) | x[0].astype(np.uint64)
    result = np.zeros(1, np.uint32)
    for k in range(4):
        choice = x[2] >> np.uint32(4 * k) & np.uint32(15)
        byte = (whole >> (np.uint64(8) * (choice & np.uint32(7)).astype(np.uint64))).astype(np.uint32) & np.uint32(0xFF)
        sign = np.where(byte & np.uint32(0x80), np.uint32(0xFF), np.uint32(0))
        result = result | np.where(choice & np.uint32(8), sign, byte) << np.uint32(8 * k)
    return result


def _leading_zeros(x: Sequence[Array]) -> Array:
    width = x[0].dtype.itemsize * 8
    count = np.zeros(x[0].shape, np.uint32)
    left = x[0]
    for _ in range(width):
        count += left != 0
        left = left >> left.dtype.type(1)
    return np.uint32(width) - count


def _reverse(x: Sequence[Array]) -> Array:
    a = x[0]
    result = np.zeros(a.shape, a.dtype)
    for _ in range(a.dtype.itemsize * 8):
        result = result << a.dtype.type(1) | a & a.dtype.type(1)
        a = a >> a.dtype.type(1)
    return result


def _distance(x: Sequence[Array], mods: Mapping[str, str]) -> Array:
    a, b = typed(x[0], mods), typed(x[1], mods)
    return x[2] + _bits(np.maximum(a, b) - np.minimum(a, b))


def _ordered(choose: np.ufunc) -> Typed:
    return lambda x, mods: _bits(choose(typed(x[0], mods), typed(x[1], mods)))


_PLAIN: dict[str, Plain] = {
    "add": lambda x: x[0] + x[1],
    "sub": lambda x: x[0] - x[1],
    "neg": lambda x: np.zeros(1, x[0].dtype) - x[0],
    "abs": lambda x: _bits(np.abs(_signed(x[0]))),
    "and": lambda x: x[0] & x[1],
    "or": lambda x: x[0] | x[1],
    "xor": lambda x: x[0] ^ x[1],
    "not": lambda x: ~x[0],
    "cnot": lambda x: (x[0] == 0).astype(x[0].dtype),
    "shl": _shift_left,
    "lop3": _lop3,
    "prmt": _permute,
    "bfi": _insert,
    "popc": lambda x: np.bitwise_count(x[0]).astype(np.uint32),
    "clz": _leading_zeros,
    "brev": _reverse,
}  # fmt: skip
_TYPED: dict[str, Typed] = {
    "mul": lambda x, mods: _product(x[0], x[1], mods),
    "mad": lambda x, mods: _product(x[0], x[1], mods) + x[2],
    "div": _divide,
    "rem": _remainder,
    "min": _ordered(np.minimum),
    "max": _ordered(np.maximum),
    "sad": _distance,
    "shr": _shift_right,
    "shf": _funnel,
    "bfe": _field,
    "setp": _compare,
    "cvt": _convert,
}  # fmt: skip
