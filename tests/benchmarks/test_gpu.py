"""What is made of times measured on a GPU, and how they are measured, on the stand-in driver."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from benchmarks import gpu
from benchmarks.timing import table
from teenycli.devices.cuda.probe import Survey
from tests.commands.teeny import ROOT, Teeny
from tests.driver.engine import Engine


@pytest.mark.unit
@pytest.mark.parametrize(("took", "share", "ok"), [(3.0, 1.0, True), (3.15, 0.952, True), (3.16, 0.949, False)])
def test_a_vector_add_is_held_against_a_copy_of_as_many_bytes(took: float, share: float, ok: bool) -> None:
    row = gpu.bandwidth_row("add", 12 * 10**9, [took, 2 * took, took / 2], 8 * 10**9, [2.0, 2.0, 2.1], 1 / gpu.SHARE)
    assert row.base is not None
    assert row.base.median == 3.0
    assert row.details["GB/s"] == pytest.approx(12e3 / took)
    assert row.details["copy GB/s"] == pytest.approx(4e3)
    assert row.details["share"] == pytest.approx(share, abs=1e-3)
    assert row.ok is ok


@pytest.mark.device
def test_the_bandwidth_is_that_of_the_runs_own_table(teeny: Teeny) -> None:
    run = ("run", "vector_add_cuda", "-m", ROOT / "ops.toml", "--dim", "N=10", "--device", "cpu", "--json")
    nbytes, ms = gpu.traffic(teeny(*run).json)
    assert nbytes == 120
    assert ms > 0


@pytest.mark.unit
def test_without_a_gpu_the_table_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "survey", lambda _: Survey(problem="there is none"))
    section = gpu.measure()
    assert section.ok
    assert "not measured: no GPU: there is none" in table([section])


@pytest.mark.device
def test_all_is_measured_where_there_is_a_gpu(gpus: Engine, teeny: Teeny, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times on the stand-in mean nothing; nor can a process that knows nothing of it run on it."""

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        assert command[:3] == [sys.executable, "-m", "teenycli"]
        manifest = [ROOT / arg if arg == "ops.toml" else arg for arg in command[3:]]
        return subprocess.CompletedProcess(command, 0, teeny(*manifest).out)

    monkeypatch.setattr(subprocess, "run", run)
    gpus.standin.clear()
    section = gpu.measure(1 << 12, 2, 1 << 10)
    by_the_clock = "2 launches of a CTA by the clock"
    assert [row.name.split(",")[0].strip() for row in section.rows] == [
        "teeny run", "launches after the first", "a launch over 1", by_the_clock, by_the_clock, "to prepare 2 launches",
    ]  # fmt: skip
    assert [row.limit for row in section.rows] == [1 / 0.95, None, 1.1, 1.1, None, None]
    assert gpus.standin.calls().count("cuMemcpyDtoD") == 1 + gpu.RUNS * (1 + gpu.COPIES) + gpu.COPIES


@pytest.mark.device
def test_what_cannot_be_measured_is_said(gpus: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(command: list[str], **_: Any) -> None:
        raise subprocess.CalledProcessError(3, command)

    monkeypatch.setattr(subprocess, "run", fail)
    assert gpus.standin.is_sound()
    section = gpu.measure(1 << 12, 2, 1 << 10)
    assert not section.rows
    assert "exit status 3" in table([section])
