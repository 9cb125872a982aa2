"""From PTX text to a kernel that has run, against what ptxas takes for the same file; from the cache; and the memory.

Every run is in a process of its own, which imports all that it needs before it looks at the clock.

    python -m benchmarks.start_up KERNEL [--cache]         one such process: prints milliseconds and MB as JSON
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.cases import Case, branchy, sort_rows
from benchmarks.timing import ROOT, Figure, Row, Section, stopwatch

ROUNDS = 7
CACHE_LIMIT_MS, MEMORY_LIMIT_MB = 50, 200


@dataclass(frozen=True)
class Subject:
    """A kernel to compile, and how many times as long as ptxas it may take."""

    title: str
    case: Case
    limit: float


SUBJECTS = {
    "branchy": Subject("2,000 branchy instructions (nvcc)", branchy(64), 30),
    "sort_rows": Subject("tl.sort of 1,024 (Triton)", sort_rows(1), 8),
}


def measure() -> Section:
    """Measure all of SUBJECTS."""
    rows: list[Row] = []
    ptxas = shutil.which("ptxas")
    for name, subject in SUBJECTS.items():
        fresh, cached, theirs = take_turns(name, subject, ptxas)
        times, memory = (Figure.of(values) for values in zip(*fresh, strict=True))
        title = f"{subject.title}, text to run"
        if theirs:
            rows.append(Row(f"{title}: ptxas -O3", times, Figure.of(theirs), subject.limit))
        else:
            rows.append(Row(title, times))
        rows.append(Row("  from the cache", Figure.of(ms for ms, _ in cached), limit=CACHE_LIMIT_MS))
        rows.append(Row("  peak memory beyond imports", memory, limit=MEMORY_LIMIT_MB, unit="MB"))
    return Section("from PTX to running", rows, {} if ptxas else {"no ratio": "ptxas is not on PATH"})


def take_turns(
    name: str, subject: Subject, ptxas: str | None
) -> tuple[list[Sequence[float]], list[Sequence[float]], list[float]]:
    """Milliseconds and MB of compiling, the same from the cache, and milliseconds of ptxas, if it is there."""
    fresh, cached, theirs = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        child(name, folder, "--cache")  # fills it
        for _ in range(ROUNDS):
            fresh.append(child(name, folder))
            cached.append(child(name, folder, "--cache"))
            if ptxas:
                command = [ptxas, "-O3", "-arch=sm_80", str(ROOT / subject.case.ptx), "-o", os.devnull]
                theirs.append(stopwatch(partial(subprocess.run, command, check=True)))
    return fresh, cached, theirs


def child(name: str, cache: str, *options: str) -> Sequence[float]:
    """Milliseconds and MB of one process."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.start_up", name, *options],
        cwd=ROOT, env=os.environ | {"TEENY_CACHE_DIR": cache}, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return list(map(float, json.loads(done.stdout)))


def memory() -> tuple[float, float]:
    """Resident memory of this process in MB: now (where the system tells, else the peak) and at its peak."""
    status = Path("/proc/self/status")
    if status.exists():
        sizes = dict(line.split(":", 1) for line in status.read_text().splitlines())
        now, peak = (int(sizes[key].split()[0]) / 1024 for key in ("VmRSS", "VmHWM"))
        return now, peak
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)
    return peak, peak


def run_once(name: str, cache: bool) -> tuple[float, float]:
    """Milliseconds from the text to the end of the first launch, and MB at its peak; results are checked."""
    from benchmarks.sides import Loaded
    from teenycli.devices.cpu import CpuDevice, build, ops

    build.machine()  # imports llvmlite
    ops.load()
    case = SUBJECTS[name].case
    before, _ = memory()
    kept: list[Loaded] = []

    def start() -> None:
        kept.append(Loaded(case, CpuDevice(cache=cache)))
        kept[0].run()

    took = stopwatch(start)
    _, peak = memory()
    kept[0].checked()
    return took, peak - before


if __name__ == "__main__":
    print(json.dumps(run_once(sys.argv[1], "--cache" in sys.argv)))
