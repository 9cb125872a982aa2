"""ptxas's verdict on mutants of committed PTX, recorded so that machines without ptxas have it too.

python -m tests.ptx.verdicts     records them again (needs ptxas of CUDA 13.0)
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from teenycli.errors import TeenyError
from teenycli.ptx import Source, outline, parse_all
from tests.ptx.mutations import mutants

ROOT = Path(__file__).parent.parent.parent
RECORD = Path(__file__).with_name("verdicts.json")
#: Mutants of each file; every kind of mutation once.
EACH = 10
#: What is mutated: small files that ptxas takes whole, from every compiler.
FILES = (
    "ptx/cuda/*.ptx", "ptx/triton/*.ptx", "tests/corpus/nvcc/*.ptx", "tests/corpus/triton/*.ptx",
    "tests/corpus/numba/*.ptx", "tests/corpus/clang/*.ptx",
)  # fmt: skip
_LARGEST = 24_000


def bases() -> Iterator[tuple[str, str]]:
    """Name and text of what is mutated."""
    for pattern in FILES:
        for path in sorted(ROOT.glob(pattern))[:12]:
            if path.stat().st_size <= _LARGEST:
                yield str(path.relative_to(ROOT)), path.read_text("utf-8")


def fingerprint(text: str) -> str:
    """What tells that a recorded verdict is about this text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def ours(name: str, text: str) -> TeenyError | None:
    """What the reader has against a text; None when it takes it."""
    try:
        parse_all(outline(Source(name, text)))
    except TeenyError as error:
        return error
    return None


def takes(text: str) -> bool:
    """Whether ptxas takes a text, for the architecture it names."""
    match = re.search(r"\.target\s+(sm_\w+)", text)
    arch = match[1] if match else "sm_80"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.ptx"
        path.write_text(text, "utf-8")
        command = ["ptxas", "-O0", f"-arch={arch}", str(path), "-o", os.devnull]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def verdicts(name: str, text: str) -> dict[str, bool] | None:
    """ptxas's verdict on each mutant of a file; None when it refuses the file itself."""
    if not takes(text):
        return None
    found = list(mutants(name, text, EACH))
    with ThreadPoolExecutor(2) as pool:
        return dict(zip((mutant for mutant, _ in found), pool.map(takes, (text for _, text in found)), strict=True))


def main() -> None:
    """Record, and show where the reader says otherwise."""
    record = {}
    for name, text in bases():
        found = verdicts(name, text)
        if found is None:
            print(f"ptxas refuses {name}", file=sys.stderr)
            continue
        record[name] = {"text": fingerprint(text), "mutants": found}
        for mutant, changed in mutants(name, text, EACH):
            problem = ours(mutant, changed)
            if (problem is None) != found[mutant]:
                print(f'    "{mutant}": "{"teeny: " + str(problem) if problem else "ptxas"}",')
    RECORD.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
