"""Registers over many threads at once: their bits as numpy arrays, and of which lanes they are known.

Arrays have one element a lane, or a single one where all lanes have the same. What comes out of memory, of floating
point or of other lanes is not known. Imports numpy and nothing of ours.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

#: Unsigned types by width in bits; a predicate has 1.
UNSIGNED = {1: np.dtype(np.bool_)} | {width: np.dtype(f"u{width // 8}") for width in (8, 16, 32, 64)}
SIGNED = {width: np.dtype(f"i{width // 8}") for width in (8, 16, 32, 64)}

#: Where a value is known that is known in every lane, or in none: these very objects, so that it costs nothing to see.
EVERYWHERE, NOWHERE = np.ones(1, np.bool_), np.zeros(1, np.bool_)


class Value(NamedTuple):
    """``bits`` unsigned, as wide as the register; ``known`` True or a bool a lane."""

    bits: Array
    known: Array

    @property
    def certain(self) -> bool:
        """Known in every lane, as far as that is seen at once."""
        return self.known is EVERYWHERE

    @property
    def lost(self) -> bool:
        """Known in no lane, as far as that is seen at once."""
        return self.known is NOWHERE

    def where(self, mask: Array, other: Value) -> Value:
        """This value in the lanes of ``mask``, ``other`` in the rest."""
        if self.lost:
            return other.only(~mask)
        bits = np.where(mask, self.bits, other.bits.astype(self.bits.dtype, copy=False))
        return Value(bits, EVERYWHERE if self.certain and other.certain else np.where(mask, self.known, other.known))

    def only(self, mask: Array) -> Value:
        """This value, known in the lanes of ``mask`` at most."""
        return self if self.lost else Value(self.bits, mask if self.certain else self.known & mask)


def known(bits: Array) -> Value:
    return Value(bits, EVERYWHERE)


@lru_cache(maxsize=1024)
def constant(value: int, width: int) -> Value:
    """The same number in every lane, cut to ``width`` bits."""
    return Value(np.array([value & (1 << width) - 1], np.uint64).astype(UNSIGNED[width]), EVERYWHERE)


@lru_cache(maxsize=64)
def unknown(width: int) -> Value:
    return Value(np.zeros(1, UNSIGNED.get(width, UNSIGNED[64])), NOWHERE)


def all_of(*values: Value) -> Array:
    """Where every one is known."""
    result = EVERYWHERE
    for value in values:
        if value.lost:
            return NOWHERE
        if not value.certain:
            result = value.known if result is EVERYWHERE else result & value.known
    return result


def has_any(mask: Array) -> bool:
    """Whether there is a lane in the mask."""
    return bool(np.count_nonzero(mask))


def resize(bits: Array, width: int, signed: bool = False) -> Array:
    """Bits cut, or extended with the sign or zeros, to ``width``."""
    if bits.dtype is UNSIGNED[width] or bits.dtype == UNSIGNED[width]:
        return bits
    if signed and bits.dtype != np.bool_ and bits.dtype.itemsize * 8 < width:
        wider: Array = bits.view(SIGNED[bits.dtype.itemsize * 8]).astype(SIGNED[width]).view(UNSIGNED[width])
        return wider
    cut: Array = bits.astype(UNSIGNED[width])
    return cut
