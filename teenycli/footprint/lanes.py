"""Registers over many threads at once: their bits as numpy arrays, and of which lanes they are known.

Arrays have one element a lane, or a single one where all lanes have the same. What comes out of memory, of floating
point or of other lanes is not known. Imports numpy and nothing of ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

#: Unsigned types by width in bits; a predicate has 1.
UNSIGNED: dict[int, Any] = {1: np.bool_, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
SIGNED: dict[int, Any] = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}

_TRUE, _FALSE = np.ones(1, np.bool_), np.zeros(1, np.bool_)


@dataclass(frozen=True, slots=True)
class Value:
    """``bits`` unsigned, as wide as the register; ``known`` True or a bool a lane."""

    bits: Array
    known: Array

    @property
    def all_known(self) -> bool:
        return self.known is _TRUE or bool(self.known.all())

    def where(self, mask: Array, other: Value) -> Value:
        """This value in the lanes of ``mask``, ``other`` in the rest."""
        bits = np.where(mask, self.bits, other.bits.astype(self.bits.dtype, copy=False))
        both = self.known is _TRUE and other.known is _TRUE
        return Value(bits, _TRUE if both else np.where(mask, self.known, other.known))

    def only(self, mask: Array) -> Value:
        """This value, known in the lanes of ``mask`` at most."""
        return Value(self.bits, self.known & mask)


def known(bits: Array) -> Value:
    return Value(bits, _TRUE)


def constant(value: int, width: int) -> Value:
    """The same number in every lane, cut to ``width`` bits."""
    return Value(np.array([value & (1 << width) - 1], np.uint64).astype(UNSIGNED[width]), _TRUE)


def unknown(width: int) -> Value:
    return Value(np.zeros(1, UNSIGNED.get(width, np.uint64)), _FALSE)


def all_of(*values: Value) -> Array:
    """Where every one is known."""
    result = _TRUE
    for value in values:
        if value.known is not _TRUE:
            result = value.known if result is _TRUE else result & value.known
    return result


def resize(bits: Array, width: int, signed: bool = False) -> Array:
    """Bits cut, or extended with the sign or zeros, to ``width``."""
    if bits.dtype == UNSIGNED[width]:
        return bits
    if signed and bits.dtype != np.bool_ and bits.dtype.itemsize * 8 < width:
        wider: Array = bits.view(SIGNED[bits.dtype.itemsize * 8]).astype(SIGNED[width]).view(UNSIGNED[width])
        return wider
    cut: Array = bits.astype(UNSIGNED[width])
    return cut
