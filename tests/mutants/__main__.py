"""``python -m tests.mutants [MANIFEST] [--op OP] [--kind KIND]``: mutate, judge, print."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.mutants.judges import judge_all, product_probe
from tests.mutants.kinds import KINDS
from tests.mutants.subjects import Subjects
from tests.mutants.tables import page


def main() -> None:
    """Print the tables, and the time on standard error."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Who reports mutants of ops?")
    parser.add_argument("manifest", nargs="?", default="ops.toml", type=Path)
    parser.add_argument("--op", action="append", help="only this op (again for more)")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this kind (again for more)")
    parser.add_argument("--no-probe", action="store_true", help="static rules alone")
    options = parser.parse_args()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        subjects = Subjects(options.manifest, Path(folder))
        names = options.op or list(subjects.ops)
        mutants = [mutant for name in names for mutant in subjects.mutants(subjects.ops[name])]
        chosen = [mutant for mutant in mutants if mutant.kind in (options.kind or KINDS)]
        probe = None if options.no_probe else opened.enter_context(product_probe(subjects.modules))
        results = judge_all(chosen, subjects.modules, probe)
    print("\n".join(page(results)))
    print(f"{time.perf_counter() - start:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
