"""`teeny check` against what `ptxas -O0` takes to compile the same PTX.

Two manifests: one kernel of 4,400 lines, all of the command against one run of ptxas (at most 4 times); and the
repository's own, what it takes beyond `teeny --version` against a run of ptxas for each of its PTX files (at most 3
times). Processes are counted by the time that they took on a processor, and shown beside it by the clock.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.timing import ROOT, Figure, Row, Section
from teenycli.manifest.load import load_manifest, ptx_file
from teenycli.manifest.spec import KernelSpec

ROUNDS = 9
KERNEL = ROOT / "benchmarks" / "kernels" / "ops.toml"
MANIFEST = ROOT / "ops.toml"
VERSION = ("--version",)

_TARGET = re.compile(r"^\.target\s+(\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Spent:
    """What processes took, in milliseconds: on the processor, in user and system mode, and by the clock."""

    cpu: float
    wall: float

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.cpu + other.cpu, self.wall + other.wall)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.cpu - other.cpu, self.wall - other.wall)


def measure() -> Section:
    """Measure both manifests."""
    ptxas = shutil.which("ptxas")
    files = {manifest: ptx_files(manifest) for manifest in (KERNEL, MANIFEST)}
    facts: dict[str, object] = {"PTX files of ops.toml": len(files[MANIFEST])}
    if ptxas is None:
        facts["no ratio"] = "ptxas is not on PATH"
    teeny: dict[Path, list[Spent]] = {KERNEL: [], MANIFEST: []}
    theirs: dict[Path, list[Spent]] = {KERNEL: [], MANIFEST: []}
    spent_on_teeny(VERSION)  # and whatever the first start of all leaves behind
    for _ in range(ROUNDS):
        for manifest in (KERNEL, MANIFEST):
            teeny[manifest].append(spent_on_teeny(("check", "--manifest", str(manifest))))
            if ptxas is not None:
                theirs[manifest].append(spent_on_ptxas(ptxas, files[manifest]))
        teeny[MANIFEST][-1] -= spent_on_teeny(VERSION)
    lines = files[KERNEL][0].read_text().count("\n")
    rows = [
        *compared(f"check, {lines:,} lines of Triton: ptxas -O0", teeny[KERNEL], theirs[KERNEL], 4),
        *compared("check, ops.toml beyond --version: its ptxas -O0", teeny[MANIFEST], theirs[MANIFEST], 3),
    ]
    return Section("teeny check", rows, facts)


def compared(name: str, ours: Sequence[Spent], theirs: Sequence[Spent], limit: float) -> list[Row]:
    """A row with the limit, on processor time, and one by the clock. No ratio where there is no ptxas."""
    cpu, wall = Figure.of(one.cpu for one in ours), Figure.of(one.wall for one in ours)
    if not theirs:
        return [Row(name, cpu), Row("  by the clock", wall)]
    return [
        Row(name, cpu, Figure.of(one.cpu for one in theirs), limit),
        Row("  by the clock", wall, Figure.of(one.wall for one in theirs)),
    ]


def ptx_files(manifest: Path) -> list[Path]:
    """Each PTX file that ops of the manifest and their backwards are of, once. Raises what reading it raises."""
    kernels: list[KernelSpec] = []
    for op in load_manifest(manifest).ops.values():
        kernels += [op] if op.backward is None else [op, op.backward]
    return list(dict.fromkeys(ptx_file(kernel) for kernel in kernels))


def spent_on_teeny(args: Sequence[str]) -> Spent:
    return spent([sys.executable, "-m", "teenycli", *args])


def spent_on_ptxas(ptxas: str, files: Sequence[Path]) -> Spent:
    """One run for each file, for its own target."""
    total = Spent(0, 0)
    for file in files:
        target = _TARGET.search(file.read_text())
        assert target is not None, file
        total += spent([ptxas, "-O0", f"-arch={target[1]}", str(file), "-o", os.devnull])
    return total


def spent(command: Sequence[str]) -> Spent:
    """What one process takes, those that it starts included. Python may keep what it compiles, as it does for users."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(1e3 * cpu, 1e3 * wall)
