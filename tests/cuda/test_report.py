"""What is written of a session on a GPU: from made-up reports, and from a session on the stand-in driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pytest

from teenycli.devices.cuda.gpu import Gpu
from tests.commands.teeny import ROOT, Done
from tests.cuda.report import VARIABLE, Record, record_differences
from tests.driver import standin

GPU = Gpu("cuda:0", "NVIDIA H200", 90, (13, 0), 1 << 37)
#: A session on the stand-in: one test that passes, and one that is left out.
SESSION = """
import sys, pytest
from tests.driver import engine, standin
running = engine.start(standin.load())
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-m", "cuda", *sys.argv[1:]]))
"""


def report(
    name: str,
    outcome: Literal["passed", "failed", "skipped"] = "passed",
    when: Literal["setup", "call", "teardown"] = "call",
    why: Any = None,
    differences: list[dict[str, object]] | None = None,
) -> pytest.TestReport:
    properties = [] if differences is None else [("differences", differences)]
    return pytest.TestReport(name, ("t.py", 1, name), {}, outcome, why, when, user_properties=properties, duration=0.5)


def written(record: Record, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv(VARIABLE, str(folder / "out.json"))
    path = record.write()
    assert path == folder / "out.json"
    return json.loads(path.read_text("utf-8"))


@pytest.mark.unit
def test_tests_are_counted_once_whatever_phase_they_fail_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = Record()
    record.gpu = GPU
    for when in ("setup", "call", "teardown"):
        record.add(report("good", when=when))
        record.add(report("untidy", "failed" if when == "teardown" else "passed", when))
    record.add(report("unready", "failed", "setup"))
    for name in ("b", "c"):
        record.add(report(name, "skipped", "setup", ("t.py", 3, "Skipped: needs sm_100")))
    document = written(record, tmp_path, monkeypatch)
    assert [document[outcome] for outcome in ("passed", "failed", "skipped")] == [1, 2, 2]
    assert document["failures"] == ["untidy", "unready"]
    assert document["skips"] == [{"reason": "needs sm_100", "tests": 2}]
    assert document["duration_s"] == 4.5
    assert document["gpu"].items() >= {"product": "NVIDIA H200", "sm": 90, "cuda": "13.0", "memory": 1 << 37}.items()
    assert document["packages"]["pytest"] == pytest.__version__


@pytest.mark.unit
def test_differences_are_those_that_the_command_found_a_failing_one_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = {
        "op": "add",
        "case": {"N": 1},
        "name": "out",
        "ok": False,
        "max_abs": "nan",
        "max_rel": 0.5,
        "max_ulp": 9,
    }
    given: list[tuple[str, Any]] = []
    done = Done(1, json.dumps({"compare": [{**figures, "mismatches": 1}]}), "")
    record_differences(lambda *each: given.append(each), done, "cpu")
    record_differences(lambda *each: given.append(each), Done(1, "", "no"), "cpu")
    record = Record()
    record.gpu = GPU
    for _, differences in given:
        record.add(report("t", "failed", differences=differences))
        record.add(report("t", when="teardown", differences=differences))
    assert written(record, tmp_path, monkeypatch)["differences"] == [{"against": "cpu", **figures}]


@pytest.mark.unit
@pytest.mark.parametrize(("gpu", "outcome"), [(None, "passed"), (GPU, "skipped")])
def test_nothing_is_written_where_nothing_ran_on_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpu: Gpu | None, outcome: Literal["passed", "skipped"]
) -> None:
    monkeypatch.chdir(tmp_path)
    record = Record()
    record.gpu = gpu
    record.add(report("t", outcome))
    assert record.write() is None
    assert not list(tmp_path.iterdir())


@pytest.mark.unit
def test_workers_write_files_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    record = Record()
    record.gpu = GPU
    record.add(report("t"))
    assert (record.write(), record.write("gw1")) == (tmp_path / "cuda-report.json", tmp_path / "cuda-report-gw1.json")


@pytest.mark.device
def test_a_session_writes_its_report(tmp_path: Path) -> None:
    pytest.importorskip("cuda.core", reason="cuda.core is not installed", exc_type=ImportError)
    try:
        standin.build()
    except standin.UnavailableError as error:
        pytest.skip(f"no stand-in for the CUDA driver: {error}")
    path = tmp_path / "out.json"
    environment = {**os.environ, VARIABLE: str(path), "STANDIN_GPUS": "80", "STANDIN_FOR_A_GPU": "1"}
    tests = [
        "tests/cuda/test_gallery.py",
        "tests/cuda/test_on_a_gpu.py",
        "-k",
        "[axpy_bf16_cuda] or no_cluster_divides",
    ]
    command = [sys.executable, "-c", SESSION, *tests]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(path.read_text("utf-8"))
    assert [document[outcome] for outcome in ("passed", "failed", "skipped")] == [2, 0, 1]
    assert document["gpu"]["sm"] == 80
    assert "sm_90" in document["skips"][0]["reason"]
    found = [(one["against"], one["op"], one["max_ulp"] is not None) for one in document["differences"]]
    assert found == [("reference", "axpy_bf16_cuda", True)] * 3 + [("cpu", "axpy_bf16_cuda", True)] * 3
