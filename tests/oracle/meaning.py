"""What instructions mean: a table from opcode to a function, filled by ``integers``, ``floating`` and ``convert``.

A meaning is made once for an instruction's modifiers and then called with the bits of its sources, unsigned, each as
wide as its type; it gives the bits of the result, several as a tuple, None for what the ISA leaves open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Mods = Mapping[str, str]
Bits = int | None
Meaning = Callable[..., Any]

MEANINGS: dict[str, Callable[[Mods], Meaning]] = {}


def means(*opcodes: str) -> Callable[[Callable[[Mods], Meaning]], Callable[[Mods], Meaning]]:
    """Register a maker of meanings."""

    def register(make: Callable[[Mods], Meaning]) -> Callable[[Mods], Meaning]:
        for opcode in opcodes:
            assert opcode not in MEANINGS, opcode
            MEANINGS[opcode] = make
        return make

    return register


def width(type: str) -> int:
    """Bits of a scalar type such as ``s32``."""
    return int(type.lstrip("bfsu"))


def signed(value: int, bits: int) -> int:
    """Two's complement: unsigned bits to the number they stand for."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def number(type: str) -> Callable[[int], int]:
    """From bits to the integer that they are as ``type``."""
    bits = width(type)
    mask = (1 << bits) - 1
    return (lambda v: signed(v, bits)) if type[0] == "s" else (lambda v: v & mask)


def clamped(value: int, type: str) -> int:
    """Held to the range of an integer type."""
    bits = width(type)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if type[0] == "s" else (0, (1 << bits) - 1)
    return min(max(value, low), high)


def packed(one: Meaning, count: int, bits: int) -> Meaning:
    """An operation on each of the parts that are packed in a register."""
    mask = (1 << bits) - 1

    def every(*args: int) -> Bits:
        result = 0
        for k in range(count):
            part = one(*(a >> k * bits & mask for a in args))
            if part is None:
                return None
            result |= (part & mask) << k * bits
        return result

    return every
