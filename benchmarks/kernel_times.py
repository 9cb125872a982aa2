"""Launches on the CPU device against numpy, against PoCL on the same algorithm, and against what the machine can do.

On one thread and on two, in one run: the sides take turns, each in a process of its own. Times are of a launch,
compilation apart; every side's results are checked against numpy's first.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

from benchmarks.cases import KERNELS, Kernel
from benchmarks.timing import Figure, Row, Section
from benchmarks.worker import Worker, WorkerError

SIDES = ("teeny", "numpy", "pocl", "copy", "fma")
THREADS = (1, 2)
ROUNDS = 9

Times = Mapping[tuple[str, int], Figure]
Facts = Mapping[tuple[str, int], Mapping[str, float]]


def measure() -> Section:
    """Measure all of KERNELS."""
    rows: list[Row] = []
    notes: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as cache, ExitStack() as stack:
        workers = [stack.enter_context(Worker(side, count, cache)) for count in THREADS for side in SIDES]
        for number, kernel in enumerate(KERNELS):
            facts: dict[tuple[str, int], Mapping[str, float]] = {}
            for worker in [*workers]:
                try:
                    facts[worker.side, worker.threads] = worker.prepare(number)
                except WorkerError as error:
                    if worker.side != "pocl":
                        raise
                    notes["no PoCL"] = error
                    workers.remove(worker)
            times = take_turns(workers)
            rows += kernel_rows(kernel, times, facts)
    return Section("kernels on the CPU device", rows, notes)


def take_turns(workers: Sequence[Worker]) -> Times:
    """The times of every worker, in ROUNDS rounds."""
    times: dict[tuple[str, int], list[float]] = {(worker.side, worker.threads): [] for worker in workers}
    for _ in range(ROUNDS):
        for worker in workers:
            times[worker.side, worker.threads] += worker.turn()
    return {key: Figure.of(found) for key, found in times.items()}


def kernel_rows(kernel: Kernel, times: Times, facts: Facts) -> Iterator[Row]:
    """Compilation and the comparisons of one kernel. Limits hold on the most threads."""
    compiled = facts["teeny", max(THREADS)]
    details = {name: compiled[name] for name in ("ir_lines", "reload_ms")}
    yield Row(f"{kernel.name}: compile", Figure.of([facts["teeny", n]["compile_ms"] for n in THREADS]), details=details)
    for count in THREADS:
        ours, full = times["teeny", count], count == max(THREADS)
        name = f"  {count} thread{'s' if count > 1 else ''}, against"
        yield Row(f"{name} numpy", ours, times["numpy", count], kernel.numpy_limit if full else None)
        if ("pocl", count) in times:
            yield Row(f"{name} PoCL", ours, times["pocl", count], kernel.pocl_limit if full else None)
        what, bound = bound_of(times, facts, count)
        yield Row(f"{name} {what}", ours, bound, details={"share": bound.median / ours.median})


def bound_of(times: Times, facts: Facts, threads: int) -> tuple[str, Figure]:
    """What holds the machine back most, and the time that it leaves a perfect kernel."""
    ours = facts["teeny", threads]
    found = []
    for side, amount, what in (("copy", "bytes", "copy bandwidth"), ("fma", "operations", "FMA rate")):
        share = ours[amount] / facts[side, threads][amount]
        figure = times[side, threads]
        found.append((what, Figure(figure.median * share, figure.minimum * share)))
    return max(found, key=lambda pair: pair[1].median)
