"""What the benchmarks share: medians of alternating runs, peak memory of a process, a table of ratios."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Ratio:
    """One line of a benchmark: medians of both sides in milliseconds (or MB), their ratio, and the most it may be."""

    name: str
    ours: float
    base: float
    ratio: float
    limit: float | None
    unit: str = "ms"

    @property
    def ok(self) -> bool:
        return self.limit is None or self.ratio <= self.limit


def alternate(ours: Callable[[], object], base: Callable[[], object], rounds: int) -> tuple[list[float], list[float]]:
    """Times of both in milliseconds, by turns, so that a noisy minute hits both."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for function, into in zip((ours, base), times, strict=True):
            start = time.perf_counter()
            function()
            into.append((time.perf_counter() - start) * 1e3)
    return times


def compare(
    name: str, ours: Callable[[], object], base: Callable[[], object], *, rounds: int = 11, limit: float | None = None
) -> Ratio:
    """The ratio of medians of two functions, after one unmeasured call of each."""
    ours()
    base()
    mine, other = (statistics.median(times) for times in alternate(ours, base, rounds))
    return Ratio(name, mine, other, mine / other, limit)


def process(args: Sequence[str | Path]) -> Callable[[], None]:
    """A function that runs ``python ARGS`` in a process of its own from the repository's root, output thrown away."""
    command = [sys.executable, *map(str, args)]
    return lambda: void(subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True))


def void(_value: object) -> None:
    """Nothing."""


def peak_memory(args: Sequence[str | Path]) -> float:
    """Peak resident memory of ``python ARGS``, in MB."""
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, sys.executable, *map(str, args)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(done.stdout) / (1024 if sys.platform != "darwin" else 1024**2)


def report(title: str, rows: Sequence[Ratio], facts: Mapping[str, object] | None = None) -> int:
    """Print the rows as a table, or as JSON with ``--json`` in the command line; 1 when one is over its limit."""
    if "--json" in sys.argv:
        print(json.dumps({"title": title, "facts": dict(facts or {}), "rows": [asdict(row) for row in rows]}, indent=1))
    else:
        print(title)
        for key, value in (facts or {}).items():
            print(f"  {key}: {value}")
        width = max(len(row.name) for row in rows)
        for row in rows:
            limit = "" if row.limit is None else f"  at most {row.limit:g}: {'ok' if row.ok else 'OVER'}"
            figures = f"{row.ours:10.1f} {row.unit}  {row.base:10.1f} {row.unit}  {row.ratio:6.2f}"
            print(f"  {row.name:{width}}  {figures}{limit}")
    return int(not all(row.ok for row in rows))


def own_peak() -> float:
    """Peak resident memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
