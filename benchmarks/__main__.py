"""All benchmarks, or the ones named, as one table; the same as JSON in a file.

    python -m benchmarks [--json FILE] [entries] [check] [start-up] [kernels] [gpu]

Exit status 1 when a ratio is over its limit.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks import check_times, entries, gpu, kernel_times, start_up
from benchmarks.timing import ROOT, table, write_json

BENCHMARKS = {
    "entries": entries.measure,
    "check": check_times.measure,
    "start-up": start_up.measure,
    "kernels": kernel_times.measure,
    "gpu": gpu.measure,
}


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measures; exit status 1: over a limit.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--json", type=Path, default=ROOT / "benchmarks" / "results.json", metavar="FILE")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}")
    sections = [BENCHMARKS[name]() for name in given.names or BENCHMARKS]
    print(table(sections))
    write_json(sections, given.json)
    return int(not all(section.ok for section in sections))


if __name__ == "__main__":
    sys.exit(main())
