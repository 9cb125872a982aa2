"""Video instructions, scalar and SIMD (PTX ISA 9.7.18).

They name parts of their registers, so a meaning is made from the whole instruction.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from teenycli.ptx.code import Op, Operand, Reg
from tests.oracle.meaning import Bits, Meaning, Mods, clamped, signed

_BINARY: dict[str, Callable[[int, int], int]] = {
    "vadd": operator.add, "vsub": operator.sub, "vabsdiff": lambda a, b: abs(a - b), "vmin": min, "vmax": max,
    "vavrg": lambda a, b: a + b + (a + b >= 0) >> 1,
}  # fmt: skip
_COMPARE = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
            "ge": operator.ge}  # fmt: skip
_WORD = 0xFFFFFFFF


def is_video(opcode: str) -> bool:
    return opcode.rstrip("24") in {*_BINARY, "vset", "vshl", "vshr", "vmad"}


def video(op: Op) -> Meaning:
    """What a video instruction makes of the words of its sources."""
    if op.opcode[-1] in "24":
        return _simd(op)
    return _vmad(op) if op.opcode == "vmad" else _scalar(op)


def _part_of(operand: Operand | None) -> str | None:
    return operand.part if isinstance(operand, Reg) else None


def _field(part: str | None) -> tuple[int, int]:
    """Where a byte or half lies, and its bits."""
    if part is None:
        return 0, 32
    bits = 8 if part[0] == "b" else 16
    return int(part[1]) * bits, bits


def _extract(value: int, part: str | None, type: str) -> int:
    at, bits = _field(part)
    value = value >> at & (1 << bits) - 1
    return signed(value, bits) if type == "s32" else value


def _operation(opcode: str, m: Mods) -> Callable[[int, int], int]:
    if opcode == "vset":
        test = _COMPARE[m["cmp"]]
        return lambda a, b: int(test(a, b))
    if opcode in ("vshl", "vshr"):
        is_left = opcode == "vshl"

        def shift(a: int, b: int) -> int:
            b = min(b, 32) if m["mode"] == "clamp" else b & 31
            return a << b if is_left else a >> b

        return shift
    return _BINARY[opcode]


def _scalar(op: Op) -> Meaning:
    m, parts = op.mods, [_part_of(o) for o in op.operands]
    dtype = m.get("dtype", "u32")
    function = _operation(op.opcode, m)

    def act(a: int, b: int, c: int = 0) -> Bits:
        x = function(_extract(a, parts[1], m["atype"]), _extract(b, parts[2], m.get("btype", "u32")))
        at, bits = _field(parts[0])
        if "sat" in m:
            x = clamped(x, f"{dtype[0]}{bits}")
        if parts[0] is not None:
            mask = (1 << bits) - 1 << at
            return c & ~mask | x << at & mask
        if m.get("op") == "add":
            x += c
        elif "op" in m:
            if clamped(x, dtype) != x:
                return None
            x = (min if m["op"] == "min" else max)(x, signed(c, 32) if dtype == "s32" else c)
        return x & _WORD

    return act


def _vmad(op: Op) -> Meaning:
    m, parts = op.mods, [_part_of(o) for o in op.operands]
    minus = [isinstance(o, Reg) and o.negated for o in op.operands]
    opposite = minus[1] != minus[2]
    is_signed = "s32" in (m["atype"], m["btype"]) or opposite or minus[3]

    def act(a: int, b: int, c: int) -> int:
        product = _extract(a, parts[1], m["atype"]) * _extract(b, parts[2], m["btype"])
        addend = signed(c, 32) if is_signed else c
        total = (-product if opposite else product) + (-addend if minus[3] else addend) + ("po" in m)
        total >>= {"shr7": 7, "shr15": 15}.get(m.get("scale", ""), 0)
        return (clamped(total, "s32" if is_signed else "u32") if "sat" in m else total) & _WORD

    return act


def _simd(op: Op) -> Meaning:
    """Two halves or four bytes at once, picked from those of a and b; c fills what the mask leaves out."""
    m, count = op.mods, int(op.opcode[-1])
    bits = 32 // count
    mask, first, second = (_part_of(o) for o in op.operands[:3])
    kept = [k for k in range(count) if mask is None or str(k) in mask[1:]]
    picks = [_order(first, 0, count), _order(second, count, count)]
    dtype = m.get("dtype", "u32")
    function = _operation(op.opcode[:-1], m)

    def element(both: int, index: int, type: str) -> int:
        value = both >> index * bits & (1 << bits) - 1
        return signed(value, bits) if type == "s32" else value

    def act(a: int, b: int, c: int) -> int:
        both, result = a | b << 32, c
        for k in kept:
            x = function(element(both, picks[0][k], m["atype"]), element(both, picks[1][k], m["btype"]))
            if "sat" in m:
                x = clamped(x, f"{dtype[0]}{bits}")
            if "add" in m:
                result += x
            else:
                room = (1 << bits) - 1 << k * bits
                result = result & ~room | x << k * bits & room
        return result & _WORD

    return act


def _order(part: str | None, first: int, count: int) -> list[int]:
    """Which of the parts of b and a each element is, lowest first."""
    return [int(digit) for digit in reversed(part[1:])] if part else [first + k for k in range(count)]
