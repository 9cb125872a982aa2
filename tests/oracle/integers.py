"""Integer arithmetic, logic, shifts, bit fields, carry chains and selection (PTX ISA 9.7.1, 9.7.2, 9.7.8)."""

from __future__ import annotations

from collections.abc import Callable

from tests.oracle.floats import FORMATS, flush
from tests.oracle.meaning import Bits, Meaning, Mods, clamped, means, number, packed, signed, width


def mask(bits: int) -> int:
    return (1 << bits) - 1


# --- arithmetic ------------------------------------------------------------------------------------------------------


def by_parts(m: Mods, make: Callable[[Mods], Meaning]) -> Meaning:
    """The meaning for a packed type such as ``u8x4`` from that for one part, ``u8``; a scalar type is one part."""
    type, _, count = m["type"].partition("x")
    scalar = make({**m, "type": type})
    return packed(scalar, int(count), width(type)) if count else scalar


def sum_of(m: Mods, sign: int) -> Meaning:
    """Integer ``add`` and ``sub``."""
    return by_parts(m, lambda one: _sum_of(one, sign))


def _sum_of(m: Mods, sign: int) -> Meaning:
    type = m["type"]
    bits, value = width(type), number(type)
    if "sat" in m:
        return lambda a, b: clamped(value(a) + sign * value(b), type) & mask(bits)
    if "cc" in m:
        return lambda a, b: _split(a + b if sign > 0 else a + (~b & mask(bits)) + 1, bits)
    return lambda a, b: a + sign * b & mask(bits)


def carrying(opcode: str, m: Mods) -> Meaning:
    """``addc``, ``subc``, ``madc``: the carry flag comes as a last source, and goes as a second result.

    GPUs subtract by adding the complement, so a borrow is the carry's absence.
    """
    bits = width(m["type"])
    if opcode == "madc":
        product = _product(m)
        return lambda a, b, c, carry: _split(product(a, b) + c + carry, bits)
    flip = mask(bits) if opcode == "subc" else 0
    return lambda a, b, carry: _split(a + (b ^ flip) + carry, bits)


def _split(total: int, bits: int) -> tuple[int, int]:
    return total & mask(bits), total >> bits & 1


def _product(m: Mods) -> Callable[[int, int], int]:
    """``mul``: the low or high half, or twice the width."""
    type, mode = m["type"], m["mode"]
    bits, value = width(type), number(type)
    if mode == "wide":
        return lambda a, b: value(a) * value(b) & mask(2 * bits)
    if mode == "hi":
        return lambda a, b: value(a) * value(b) >> bits & mask(bits)
    return lambda a, b: value(a) * value(b) & mask(bits)


def product_of(m: Mods) -> Meaning:
    return _product(m)


def product_and_sum(m: Mods) -> Meaning:
    """Integer ``mad``."""
    type, product = m["type"], _product(m)
    bits = width(type) * (2 if m["mode"] == "wide" else 1)
    if "sat" in m:
        return lambda a, b, c: clamped(signed(product(a, b), 32) + signed(c, 32), type) & mask(32)
    if "cc" in m:
        return lambda a, b, c: _split(product(a, b) + c, bits)
    return lambda a, b, c: product(a, b) + c & mask(bits)


def _product24(m: Mods) -> Callable[[int, int], int]:
    """The product of the low 24 bits: its low 32 bits, or bits 16 to 47."""
    value: Callable[[int], int] = (lambda v: signed(v, 24)) if m["type"] == "s32" else (lambda v: v & mask(24))
    shift = 16 if m["mode"] == "hi" else 0
    return lambda a, b: value(a) * value(b) >> shift & mask(32)


@means("mul24")
def _mul24(m: Mods) -> Meaning:
    return _product24(m)


@means("mad24")
def _mad24(m: Mods) -> Meaning:
    product = _product24(m)
    if "sat" in m:
        return lambda a, b, c: clamped(signed(product(a, b), 32) + signed(c, 32), "s32") & mask(32)
    return lambda a, b, c: product(a, b) + c & mask(32)


@means("sad")
def _sad(m: Mods) -> Meaning:
    value, bits = number(m["type"]), width(m["type"])
    return lambda a, b, c: abs(value(a) - value(b)) + c & mask(bits)


def quotient(m: Mods) -> Meaning:
    """Integer ``div``: towards zero. By zero and past the largest number, which the ISA leaves open, as GPUs do it."""
    return lambda a, b: _divided(m, a, b, 0)


@means("rem")
def _rem(m: Mods) -> Meaning:
    return lambda a, b: _divided(m, a, b, 1)


def _divided(m: Mods, a: int, b: int, which: int) -> int:
    value, bits = number(m["type"]), width(m["type"])
    x, y = value(a), value(b)
    if y == 0:
        return mask(bits)
    size = abs(x) // abs(y)
    result = -size if (x < 0) != (y < 0) else size
    return (result if which == 0 else x - y * result) & mask(bits)


def absolute(m: Mods) -> Meaning:
    value, bits = number(m["type"]), width(m["type"])
    return lambda a: abs(value(a)) & mask(bits)


def negative(m: Mods) -> Meaning:
    return by_parts(m, lambda one: lambda a: -a & mask(width(one["type"])))


def extreme(m: Mods, pick: Callable[[int, int], int]) -> Meaning:
    """Integer ``min`` and ``max``, packed ones too; ``.relu`` holds the result above zero."""

    def make(one: Mods) -> Meaning:
        value, bits = number(one["type"]), width(one["type"])

        def picked(a: int, b: int) -> int:
            result = pick(value(a), value(b))
            return (max(result, 0) if "relu" in m else result) & mask(bits)

        return picked

    return by_parts(m, make)


@means("clmad")
def _clmad(m: Mods) -> Meaning:
    """The product of polynomials with coefficients modulo 2, one half of it, and c added."""

    def act(a: int, b: int, c: int) -> int:
        product = 0
        for k in range(64):
            if a >> k & 1:
                product ^= b << k
        return (product >> (64 if m["mode"] == "hi" else 0) & mask(64)) ^ c

    return act


# --- bits ------------------------------------------------------------------------------------------------------------


@means("popc")
def _popc(_: Mods) -> Meaning:
    return int.bit_count


@means("clz")
def _clz(m: Mods) -> Meaning:
    bits = width(m["type"])
    return lambda a: bits - a.bit_length()


@means("bfind")
def _bfind(m: Mods) -> Meaning:
    bits, value = width(m["type"]), number(m["type"])

    def find(a: int) -> int:
        x = value(a)
        at = (~x if x < 0 else x).bit_length() - 1
        if at < 0:
            return mask(32)
        return bits - 1 - at if "shiftamt" in m else at

    return find


@means("fns")
def _fns(_: Mods) -> Meaning:
    def find(among: int, base: int, offset: int) -> Bits:
        if base > 31:
            return None
        count = signed(offset, 32)
        if count == 0:
            return base if among >> base & 1 else mask(32)
        at, left = base, abs(count) - 1
        while 0 <= at < 32:
            if among >> at & 1:
                if left == 0:
                    return at
                left -= 1
            at += 1 if count > 0 else -1
        return mask(32)

    return find


@means("brev")
def _brev(m: Mods) -> Meaning:
    bits = width(m["type"])
    return lambda a: int(f"{a:0{bits}b}"[::-1], 2)


def _place(a: int, bits: int) -> int:
    """A position or length. Past 255 it is open: as GPUs do it, 32-bit forms cut it off and 64-bit ones hold it."""
    return a & 255 if bits == 32 else min(a, 255)


@means("bfe")
def _bfe(m: Mods) -> Meaning:
    bits, is_signed = width(m["type"]), m["type"][0] == "s"

    def extract(a: int, b: int, c: int) -> int:
        start, length = _place(b, bits), _place(c, bits)
        filled = is_signed and length > 0 and a >> min(start + length - 1, bits - 1) & 1
        result = 0
        for k in range(bits):
            bit = a >> start + k & 1 if k < length and start + k < bits else int(filled)
            result |= bit << k
        return result

    return extract


@means("bfi")
def _bfi(m: Mods) -> Meaning:
    bits = width(m["type"])

    def insert(a: int, b: int, c: int, d: int) -> int:
        start, length = _place(c, bits), _place(d, bits)
        result = b
        for k in range(length):
            if start + k < bits:
                result = result & ~(1 << start + k) | (a >> k & 1) << start + k
        return result

    return insert


@means("szext")
def _szext(m: Mods) -> Meaning:
    def extend(a: int, b: int) -> int:
        count = b & 31
        if b >= 32 and m["mode"] == "clamp":
            return a
        if count == 0:
            return 0
        return (signed(a, count) if m["type"] == "s32" else a & mask(count)) & mask(32)

    return extend


@means("bmsk")
def _bmsk(m: Mods) -> Meaning:
    def make(a: int, b: int) -> int:
        if m["mode"] == "clamp":
            a, b = min(a, 32), min(b, 32)
        else:
            a, b = a & 31, b & 31
        return mask(b) << a & mask(32)

    return make


@means("dp4a")
def _dp4a(m: Mods) -> Meaning:
    def dot(a: int, b: int, c: int) -> int:
        pairs = ((_part(a, k, 8, m["atype"]), _part(b, k, 8, m["btype"])) for k in range(4))
        return c + sum(x * y for x, y in pairs) & mask(32)

    return dot


@means("dp2a")
def _dp2a(m: Mods) -> Meaning:
    first = 2 if m["mode"] == "hi" else 0

    def dot(a: int, b: int, c: int) -> int:
        pairs = ((_part(a, k, 16, m["atype"]), _part(b, first + k, 8, m["btype"])) for k in range(2))
        return c + sum(x * y for x, y in pairs) & mask(32)

    return dot


def _part(value: int, index: int, bits: int, type: str) -> int:
    part = value >> index * bits & mask(bits)
    return signed(part, bits) if type[0] == "s" else part


@means("lop3")
def _lop3(m: Mods) -> Meaning:
    def look_up(a: int, b: int, c: int, table: int, p: int = 0) -> int | tuple[int, int]:
        result = 0
        for k in range(32):
            index = (a >> k & 1) << 2 | (b >> k & 1) << 1 | c >> k & 1
            result |= (table >> index & 1) << k
        if "bool" not in m:
            return result
        return result, (int(result != 0) | p if m["bool"] == "or" else int(result != 0) & p)

    return look_up


@means("prmt")
def _prmt(m: Mods) -> Meaning:
    mode = m.get("mode")

    def permute(a: int, b: int, c: int) -> int:
        source = [(a | b << 32) >> 8 * k & 255 for k in range(8)]
        if mode is None:
            picked = []
            for k in range(4):
                selector = c >> 4 * k & 15
                byte = source[selector & 7]
                picked.append((255 if byte >> 7 else 0) if selector & 8 else byte)
        else:
            s = c & 3
            picked = [source[k] for k in {
                "f4e": [s, s + 1, s + 2, s + 3],
                "b4e": [s, (s - 1) % 8, (s - 2) % 8, (s - 3) % 8],
                "rc8": [s] * 4,
                "ecl": [max(k, s) for k in range(4)],
                "ecr": [min(k, s) for k in range(4)],
                "rc16": [2 * (s & 1), 2 * (s & 1) + 1] * 2,
            }[mode]]  # fmt: skip
        return sum(byte << 8 * k for k, byte in enumerate(picked))

    return permute


# --- logic and shifts ------------------------------------------------------------------------------------------------


@means("and")
def _and(_: Mods) -> Meaning:
    return lambda a, b: a & b


@means("or")
def _or(_: Mods) -> Meaning:
    return lambda a, b: a | b


@means("xor")
def _xor(_: Mods) -> Meaning:
    return lambda a, b: a ^ b


@means("not")
def _not(m: Mods) -> Meaning:
    ones = 1 if m["type"] == "pred" else mask(width(m["type"]))
    return lambda a: a ^ ones


@means("cnot")
def _cnot(_: Mods) -> Meaning:
    return lambda a: int(a == 0)


@means("shl")
def _shl(m: Mods) -> Meaning:
    bits = width(m["type"])
    return lambda a, b: a << min(b, bits) & mask(bits)


@means("shr")
def _shr(m: Mods) -> Meaning:
    bits, value = width(m["type"]), number(m["type"])
    return lambda a, b: value(a) >> min(b, bits) & mask(bits)


@means("shf")
def _shf(m: Mods) -> Meaning:
    def shift(a: int, b: int, c: int) -> int:
        n = min(c, 32) if m["mode"] == "clamp" else c & 31
        both = b << 32 | a
        return (both << n >> 32 if m["op"] == "l" else both >> n) & mask(32)

    return shift


# --- selection and movement ------------------------------------------------------------------------------------------


@means("selp")
def _selp(_: Mods) -> Meaning:
    return lambda a, b, p: a if p else b


@means("slct")
def _slct(m: Mods) -> Meaning:
    """a where c is not below zero; a NaN chooses b."""

    def choose(a: int, b: int, c: int) -> int:
        if m["ctype"] == "s32":
            return a if signed(c, 32) >= 0 else b
        c = flush(FORMATS["f32"], c) if "ftz" in m else c
        magnitude = c & mask(31)
        if magnitude > 0x7F800000:
            return b
        return b if c >> 31 and magnitude else a

    return choose


@means("mov", "cvta")
def _mov(_: Mods) -> Meaning:
    return lambda a: a
