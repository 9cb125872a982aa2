"""Memory that only its thread sees, of which values come back: ``.param`` variables around calls, and local memory.

May import ``footprint.lanes``.
"""

from __future__ import annotations

from teenycli.footprint.lanes import Array, Value


class Cells:
    """Values by variable and offset in bytes, each with its size. Bytes that were stored in other pieces than they are
    loaded in are not known."""

    def __init__(self) -> None:
        self._held: dict[tuple[int, int], tuple[Value, int]] = {}

    def load(self, variable: int, offset: int, size: int) -> Value | None:
        """What lies there; None where that is not known of any lane."""
        held = self._held.get((variable, offset))
        return held[0] if held is not None and held[1] == size else None

    def store(self, variable: int, offset: int, size: int, value: Value, lanes: Array, perhaps: Array) -> None:
        """Store in ``lanes``, over what lay there; in those of ``perhaps`` nothing is known any more."""
        old = self._held.get((variable, offset))
        end = offset + size
        for key in [k for k, (_, n) in self._held.items() if k[0] == variable and k[1] < end and offset < k[1] + n]:
            del self._held[key]
        if not lanes.all():
            value = value.where(lanes, old[0]) if old is not None and old[1] == size else value.only(lanes)
        self._held[variable, offset] = (value.only(~perhaps) if perhaps.any() else value, size)

    def spoil(self, lanes: Array) -> None:
        """In ``lanes`` anything may have been stored anywhere."""
        self._held = {key: (value.only(~lanes), size) for key, (value, size) in self._held.items()}

    def copy(self, source: Cells, variable: int, to: int) -> None:
        """What ``source`` holds of one variable becomes what another one holds here."""
        for (held, offset), cell in source._held.items():
            if held == variable:
                self._held[to, offset] = cell

    def pour(self, source: Cells, variable: int, to: int, lanes: Array) -> None:
        """As :meth:`copy`, in ``lanes`` alone; what ``source`` does not hold is not known there any more."""
        for key in [key for key in self._held if key[0] == to]:
            value, size = self._held[key]
            self._held[key] = value.only(~lanes), size
        for (held, offset), (value, size) in source._held.items():
            if held == variable:
                self.store(to, offset, size, value, lanes, ~lanes & False)
