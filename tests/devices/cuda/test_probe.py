from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from teenycli import exits
from teenycli.devices.cuda import probe
from teenycli.devices.cuda.gpu import Gpu
from teenycli.devices.cuda.probe import explain, kernel_module_version, survey
from teenycli.exits import Exit

pytestmark = pytest.mark.unit

#: A driver's library with what the probe asks; -D says how it behaves.
LIBRARY = r"""
#include <string.h>
#include <unistd.h>
int cuInit(unsigned flags) { if (HANG) sleep(3); return flags ? 1 : INIT; }
int cuDriverGetVersion(int *version) { *version = 12040; return 0; }
int cuDeviceGetCount(int *count) { *count = COUNT; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal + 100; return 0; }
int cuDeviceGetName(char *name, int size, int device) {
    strncpy(name, device == 100 ? "First" : "Other", size);
    return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = device; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    if (device < 100) return 101;
    *value = attribute == 75 ? (device == 100 ? 9 : 12) : attribute == 76 ? device - 100 : -1;
    return 0;
}
"""


def library(folder: Path, *, init: int = 0, count: int = 1, hang: bool = False, text: str = LIBRARY) -> str:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (cc) to build a driver's library with")
    source, target = folder / "cuda.c", folder / "libfake.so"
    source.write_text(text)
    flags = [f"-DINIT={init}", f"-DCOUNT={count}", f"-DHANG={int(hang)}"]
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(target), str(source), *flags], check=True)
    return str(target)


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform == "darwin":
        pytest.skip("macOS has no NVIDIA driver")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    # What this machine has in /dev is no matter of these tests.
    monkeypatch.setattr(probe, "_NODES", ())
    monkeypatch.setattr(probe, "_VERSION", Path("/none"))
    monkeypatch.setattr(exits, "_hurries", [])


def test_gpus_are_listed_in_the_driver_s_order(tmp_path: Path) -> None:
    found = survey(5, library(tmp_path, count=2))
    assert found.gpus == (Gpu("cuda:0", "First", 90, (12, 4), 100), Gpu("cuda:1", "Other", 121, (12, 4), 101))
    assert (found.problem, found.note) == (None, None)
    assert not exits.leaves_at_once()


@pytest.mark.parametrize(("value", "is_said"), [("1", True), ("0", False)])
def test_launches_that_would_block_are_not_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, is_said: bool
) -> None:
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", value)
    found = survey(5, library(tmp_path))
    assert "CUDA_LAUNCH_BLOCKING" not in os.environ
    assert (found.note or "").startswith("CUDA_LAUNCH_BLOCKING is left out") == is_said


def test_a_driver_that_hangs_is_left_behind(tmp_path: Path) -> None:
    path = library(tmp_path, hang=True)
    began = time.monotonic()
    found = survey(0.1, path)
    assert time.monotonic() - began < 1
    assert found.gpus == ()
    assert found.problem == "the NVIDIA driver has not answered within 0.1 s"
    assert exits.leaves_at_once()


def test_no_library() -> None:
    found = survey(5, "libsurely-not-there.so.9")
    assert found.gpus == ()
    assert (found.problem or "").startswith("there is no NVIDIA driver (")
    error = found.error()
    assert (error.finding.id, error.exit) == ("no-device", Exit.NO_DEVICE)


def test_a_library_that_is_no_driver(tmp_path: Path) -> None:
    found = survey(5, library(tmp_path, text="int cuInit(unsigned flags) { return 0; }"))
    assert "is no NVIDIA driver" in (found.problem or "")


def test_a_driver_without_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = library(tmp_path, count=0)
    assert survey(5, path).problem == "the NVIDIA driver is there, but no GPU"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert survey(5, path).problem == "CUDA_VISIBLE_DEVICES is '', which hides every GPU"


def test_a_driver_that_fails(tmp_path: Path) -> None:
    found = survey(5, library(tmp_path, init=803))
    assert found.problem == (
        "the NVIDIA driver is there, but its kernel module is of another version than its library (CUresult 803)"
    )


@pytest.mark.parametrize(
    ("code", "environ", "nodes", "problem", "hint"),
    [
        (100, {}, {}, "but no GPU", "--gpus all"),
        (100, {}, {"/dev/nvidiactl": True}, "but no GPU", "in MIG mode"),
        (999, {}, {"/dev/nvidiactl": True, "/dev/nvidia0": False}, "no permission to open /dev/nvidia0", "ls -l"),
        (100, {"CUDA_VISIBLE_DEVICES": "-1"}, {"/dev/nvidiactl": True}, "is '-1', which hides every GPU", "unset it"),
        (100, {"CUDA_VISIBLE_DEVICES": ""}, {"/dev/nvidiactl": False}, "no permission to open /dev/nvidiactl", "ls -l"),
        (304, {}, {"/dev/nvidiactl": False}, "no permission to open /dev/nvidiactl", "ls -l"),
        (34, {}, {}, "its library is a stub", "LD_LIBRARY_PATH"),
        (802, {}, {}, "the system is not ready (CUresult 802)", "nvidia-fabricmanager"),
        (77, {}, {}, "cuInit fails (CUresult 77)", None),
    ],
)
def test_explanations(
    code: int, environ: dict[str, str], nodes: dict[str, bool], problem: str, hint: str | None
) -> None:
    found = explain("cuInit", code, environ, nodes)
    assert problem in (found.problem or "")
    if hint is None:
        assert found.hint is None
    else:
        assert hint in (found.hint or "")


def test_patience_is_short_where_no_device_file_hints_at_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(probe, "_NODES", (str(tmp_path / "none"),))
    assert probe.usual_patience() == (probe.PATIENT if sys.platform == "win32" else probe.QUICK)
    monkeypatch.setattr(probe, "_NODES", (str(tmp_path / "none"), str(tmp_path)))
    assert probe.usual_patience() == probe.PATIENT
    monkeypatch.setattr(probe, "_NODES", ())
    monkeypatch.setattr(probe, "_VERSION", tmp_path)
    assert probe.usual_patience() == probe.PATIENT


def test_importing_the_probe_imports_no_cuda_package() -> None:
    # cuda-bindings 12 puts a module "cuda" into every process; what may not be there is anything below it.
    modules = "teenycli.devices.cuda.probe, teenycli.devices.select"
    code = f"import sys, {modules}; print(any(name.startswith('cuda.') for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep\nGCC version: gcc 12.3.0\n", "580.95.05"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159  Release Build\n", "580.159"),
        ("something else\n", None),
    ],
)
def test_the_kernel_module_s_version(tmp_path: Path, text: str, version: str | None) -> None:
    path = tmp_path / "version"
    path.write_text(text)
    assert kernel_module_version(path) == version


def test_no_kernel_module(tmp_path: Path) -> None:
    assert kernel_module_version(tmp_path / "version") is None
