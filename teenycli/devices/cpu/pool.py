"""Threads that run one launch at a time: generated code without the GIL, the caller in a wait that can be interrupted.

Imports nothing of ours.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence

Job = Callable[[], None]


class Pool:
    """``size`` threads, started when first used."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._jobs: queue.SimpleQueue[tuple[Job, _Countdown] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def run(self, jobs: Sequence[Job], timeout: float, stop: Callable[[], None]) -> bool:
        """Run ``jobs``, at most ``size`` of them, each on a thread of its own; False when ``timeout`` seconds were up.

        After a time-out or an interrupt ``stop`` is called, and the jobs are waited for: they end soon.
        """
        while len(self._threads) < len(jobs):
            thread = threading.Thread(target=self._work, name=f"teeny-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        left = _Countdown(len(jobs))
        for job in jobs:
            self._jobs.put((job, left))
        try:
            if left.done.wait(timeout or None):
                return True
        except BaseException:
            stop()
            left.done.wait()
            raise
        stop()
        left.done.wait()
        return False

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, left = item
            try:
                job()
            finally:
                left.one_less()

    def close(self) -> None:
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()


class _Countdown:
    """An event that is set when ``count`` jobs have ended."""

    def __init__(self, count: int) -> None:
        self.done = threading.Event()
        self._left = count
        self._lock = threading.Lock()

    def one_less(self) -> None:
        with self._lock:
            self._left -= 1
            if not self._left:
                self.done.set()
