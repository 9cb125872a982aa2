"""`teeny entries` against the least that reading a file can cost.

A 28 MB file of 678 entries against ``open(f).read().split("\\n")`` in a process of its own (at most 5 times), its peak
memory against the file's size (at most 6 times), and a small file against importing click and rich (at most 1.5).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.big_ptx import write_big_ptx
from benchmarks.timing import Figure, Row, Section, compare, peak_memory, process

SMALL = "ptx/triton/softmax.ptx"


def measure() -> Section:
    """Measure."""
    with tempfile.TemporaryDirectory() as folder:
        big = Path(folder) / "big.ptx"
        write_big_ptx(big)
        megabytes = big.stat().st_size / 2**20
        teeny = ["-m", "teenycli", "entries", "--json"]
        split = ["-c", f"open({str(big)!r}).read().split('\\n')"]
        imports = ["-c", "import click, rich.console, rich.table"]
        memory, size = Figure.of([peak_memory([*teeny, big])]), Figure.of([megabytes])
        rows = [
            compare("entries --json, 28 MB, 678 entries", process([*teeny, big]), process(split), limit=5),
            Row("  its memory over the file's size", memory, size, 6, "MB"),
            compare("entries --json, small file", process([*teeny, SMALL]), process(imports), rounds=21, limit=1.5),
            compare(
                "entries, small file, as a table", process([*teeny[:-1], SMALL]), process(imports), rounds=21, limit=1.5
            ),
        ]
    return Section("teeny entries", rows, {"file": f"{megabytes:.1f} MB"})
