"""Memory of the oracle: regions of bytes, a byte being None where nothing defined was stored."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.oracle.meaning import Bits

#: An address is the number of its region above this many bits, and the offset.
_SHIFT = 32


@dataclass(slots=True)
class Memory:
    """Regions by number; all spaces lie in one space of addresses, so that generic addresses need no more."""

    regions: dict[int, list[Bits]] = field(default_factory=dict)

    def add(self, data: list[Bits]) -> int:
        """A new region; gives its address."""
        number = len(self.regions) + 1
        self.regions[number] = data
        return number << _SHIFT

    def load(self, address: int, size: int) -> Bits:
        region, at = self._at(address, size)
        value = 0
        for k in range(size):
            byte = region[at + k]
            if byte is None:
                return None
            value |= byte << 8 * k
        return value

    def store(self, address: int, size: int, value: Bits) -> None:
        region, at = self._at(address, size)
        for k in range(size):
            region[at + k] = None if value is None else value >> 8 * k & 255

    def _at(self, address: int, size: int) -> tuple[list[Bits], int]:
        region, at = self.regions[address >> _SHIFT], address & (1 << _SHIFT) - 1
        assert at % size == 0, "misaligned"
        assert at + size <= len(region), "out of bounds"
        return region, at
