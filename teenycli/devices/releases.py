"""What is to be let go of in the end. Imports nothing of ours."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack


class Releases(ExitStack):
    """Releases made at the end, the last first. Each is tried; of several failures the first is raised.

    What goes wrong within the ``with`` counts as the first: what comes of it here is not told.
    """

    def later(self, release: Callable[..., object], *args: object) -> None:
        """Call ``release(*args)`` at the end."""

        def leave(kind: type[BaseException] | None, *_: object) -> None:
            try:
                release(*args)
            except Exception:
                if kind is None:
                    raise

        self.push(leave)
