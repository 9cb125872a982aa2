"""What the benchmarks share: times of functions that take turns, memory of a process, and one table of all results."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Figure:
    """Median and minimum of what was measured, in milliseconds or MB."""

    median: float
    minimum: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Figure:
        found = list(values)
        return cls(statistics.median(found), min(found))

    def __str__(self) -> str:
        return f"{self.median:9.2f} {self.minimum:9.2f}"


@dataclass(frozen=True)
class Row:
    """One comparison, or, without ``base``, one measurement.

    ``limit`` is the most that the ratio of medians may be, or our median where there is no other. ``details`` are
    figures that stand beside.
    """

    name: str
    ours: Figure
    base: Figure | None = None
    limit: float | None = None
    unit: str = "ms"
    details: Mapping[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        return self.ours.median / self.base.median if self.base else None

    @property
    def ok(self) -> bool:
        judged = self.ours.median if self.ratio is None else self.ratio
        return self.limit is None or judged <= self.limit

    def __str__(self) -> str:
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        notes = [
            f"{name} {value:.3g}" if value < 100 else f"{name} {value:.0f}" for name, value in self.details.items()
        ]
        if self.limit is not None:
            notes.append(f"at most {self.limit:g}: {'ok' if self.ok else 'OVER'}")
        base = "" if self.base is None else self.base
        return f"{self.ours}  {base!s:19}  {self.unit}  {ratio:>6}  {', '.join(notes)}".rstrip()

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "ratio": self.ratio, "ok": self.ok}


@dataclass(frozen=True)
class Section:
    """What one benchmark found: rows, and facts about what was measured or why something was not."""

    title: str
    rows: Sequence[Row]
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return all(row.ok for row in self.rows)


def stopwatch(function: Callable[[], object]) -> float:
    """Milliseconds that a call takes."""
    start = time.perf_counter()
    function()
    return (time.perf_counter() - start) * 1e3


def compare(
    name: str, ours: Callable[[], object], base: Callable[[], object], *, rounds: int = 11, limit: float | None = None
) -> Row:
    """Two functions by turns, so that a noisy minute hits both, after one unmeasured call of each."""
    ours()
    base()
    times = [(stopwatch(ours), stopwatch(base)) for _ in range(rounds)]
    mine, other = (Figure.of(side) for side in zip(*times, strict=True))
    return Row(name, mine, other, limit)


def process(args: Sequence[str | Path]) -> Callable[[], None]:
    """A function that runs ``python ARGS`` in a process of its own from the repository's root, output thrown away."""
    command = [sys.executable, *map(str, args)]

    def run() -> None:
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)

    return run


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


def table(sections: Sequence[Section]) -> str:
    """All sections as one table: medians and minima of both sides, the ratio of medians, and its limit."""
    width = max((len(row.name) for section in sections for row in section.rows), default=0)
    lines = [f"{'':{width}}  {'median':>9} {'minimum':>9}  {'base med.':>9} {'base min.':>9}  {'':2}  {'ratio':>6}"]
    for section in sections:
        lines += ["", section.title, *(f"  {key}: {value}" for key, value in section.facts.items())]
        lines += [f"{row.name:{width}}  {row}" for row in section.rows]
    return "\n".join(lines)


def write_json(sections: Sequence[Section], path: Path) -> None:
    """The same as a document: a list of sections. Raises OSError."""
    document = [
        {"title": one.title, "facts": dict(one.facts), "rows": [row.as_json() for row in one.rows]} for one in sections
    ]
    path.write_text(json.dumps(document, indent=1) + "\n")
