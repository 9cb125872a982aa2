"""A process that holds one side of the comparison at one number of threads, and the object that talks to it.

OpenBLAS and PoCL read their number of threads once, from the environment: hence a process for each. A line of JSON goes
in, ``{"prepare": NUMBER OF THE KERNEL}`` or ``{"run": null}``, and one comes out.

    python -m benchmarks.worker SIDE THREADS
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from benchmarks.timing import ROOT, stopwatch

#: A turn is one unmeasured call, which finds caches full of the others' data, and TURN measured ones; of a function
#: that takes longer than LONG milliseconds it is one call.
TURN, LONG = 3, 100.0

THREADS_OF = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "POCL_MAX_PTHREAD_COUNT")


class WorkerError(Exception):
    """A side cannot run here, or ended; says why."""


class Worker:
    """A side in a process of its own. ``cache`` is the folder of compiled kernels."""

    def __init__(self, side: str, threads: int, cache: str) -> None:
        self.side, self.threads = side, threads
        environment = os.environ | dict.fromkeys(THREADS_OF, str(threads)) | {"TEENY_CACHE_DIR": cache}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", side, str(threads)],
            cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def _ask(self, question: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(question), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise WorkerError(f"{self.side} on {self.threads} threads ended with status {self._process.wait()}")
        answer = json.loads(line)
        if "missing" in answer:
            raise WorkerError(answer["missing"])
        return answer["answer"]

    def prepare(self, kernel: int) -> dict[str, float]:
        """Make ready for a kernel, check its results, and say what the side knows of it. Raises WorkerError."""
        return dict(self._ask({"prepare": kernel}))

    def turn(self) -> list[float]:
        """Milliseconds of some runs of the kernel last prepared."""
        return list(self._ask({"run": None}))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()


def turn(run: Callable[[], object]) -> list[float]:
    """The times of one turn, in milliseconds."""
    first = stopwatch(run)
    return [first] if first > LONG else [stopwatch(run) for _ in range(TURN)]


def serve(side_name: str, threads: int) -> None:
    """Answer until the input ends."""
    from benchmarks.cases import KERNELS
    from benchmarks.sides import SIDES, SideMissingError

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    run: Callable[[], object] | None = None
    for line in sys.stdin:
        question = json.loads(line)
        if "prepare" in question:
            kernel = KERNELS[question["prepare"]]
            try:
                run, facts = SIDES[side_name](kernel.make(*kernel.full), threads)
                reply: dict[str, Any] = {"answer": dict(facts)}
            except SideMissingError as error:
                reply = {"missing": str(error)}
        else:
            assert run is not None, "nothing is prepared"
            reply = {"answer": turn(run)}
        print(json.dumps(reply), file=answers, flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
