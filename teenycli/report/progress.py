"""One line on the terminal that says how far something is, and goes away when it is done.

May import ``console`` of this room.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from teenycli.report.console import Surface

#: Seconds before the line appears, and between two changes of it.
_PATIENCE, _PAUSE = 0.5, 0.1


class ProgressLine:
    """Shows bytes done of bytes in all, on a terminal; call it as they become more. It is for one thing at a time."""

    def __init__(self, surface: Surface, clock: Callable[[], float] = time.monotonic) -> None:
        self._surface = surface
        self._clock = clock
        self._began: float | None = None
        self._next = 0.0
        self._width = 0

    def __call__(self, what: str, done: int, total: int) -> None:
        """``what`` has come to ``done`` bytes of ``total``; at ``total`` the line goes away."""
        if not self._surface.tty:
            return
        now = self._clock()
        if self._began is None:
            self._began, self._next = now, now + _PATIENCE
        if done >= total:
            self._draw("")
            self._began = None
        elif now >= self._next:
            self._next = now + _PAUSE
            self._draw(f"{what}: {100 * done // total} % of {total / 2**30:.2f} GiB")

    def _draw(self, text: str) -> None:
        width = self._surface.width
        text = text if width is None else text[: width - 1]
        if text or self._width:
            self._surface.write(f"\r{text.ljust(self._width)}" + ("" if text else "\r"))
        self._width = len(text)
