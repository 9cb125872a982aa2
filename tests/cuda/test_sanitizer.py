"""Ops under compute-sanitizer, where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from teenycli.devices.cuda.gpu import Gpu
from tests.commands.teeny import ROOT
from tests.cuda import test_sanitizer as under_test
from tests.cuda.test_gallery import skip_unfit

#: What the tool is to end with when it has found something; no exit code of teeny.
FOUND = 77


#: Where toolkits lie that nobody names: installed, and out of PyPI (the dependency group ``gpu``).
TOOLKITS = (Path("/usr/local/cuda"), *Path(sysconfig.get_path("purelib")).glob("nvidia/cu*"))


def sanitizer() -> str | None:
    """compute-sanitizer on the PATH, of the toolkit that CUDA_HOME or CUDA_PATH names, or of one that is there."""
    named = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    places = [None, *(str(toolkit / "bin") for toolkit in (*named, *TOOLKITS))]
    return next((found for place in places if (found := shutil.which("compute-sanitizer", path=place))), None)


def under(tool: str, *python: str | Path) -> subprocess.CompletedProcess[str]:
    """``python ARGS`` under a tool of compute-sanitizer."""
    found = sanitizer()
    if found is None:
        pytest.skip("no compute-sanitizer on the PATH, in a toolkit or out of PyPI")
    options = ["--tool", tool, "--error-exitcode", str(FOUND)]
    if tool == "memcheck":
        options += ["--report-api-errors", "no"]  # cuda.core calls the driver to see what it refuses
    command = [found, *options, sys.executable, *map(str, python)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


@pytest.mark.unit
def test_it_is_looked_for_on_the_path_and_in_the_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(under_test, "TOOLKITS", (tmp_path / "wheel",))
    assert sanitizer() is None
    for folder, variable in (("wheel/bin", None), ("toolkit/bin", "CUDA_HOME"), ("path", None)):
        tool = tmp_path / folder / "compute-sanitizer"
        tool.parent.mkdir(parents=True)
        tool.touch(0o755)
        if variable is not None:
            monkeypatch.setenv(variable, str(tool.parents[1]))
        assert sanitizer() == str(tool)


@pytest.mark.cuda
@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "synccheck"])
@pytest.mark.parametrize("name", ["vector_add_cuda", "softmax_cuda", "cumsum_cuda", "row_sum_triton"])
def test_ops_are_clean(gpu: Gpu, apart: str, tool: str, name: str) -> None:
    skip_unfit(gpu, name)
    done = under(tool, "-m", "teenycli", "run", name, "-m", ROOT / "ops.toml", "--case", "0", "--device", apart)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.cuda
@pytest.mark.usefixtures("apart")
def test_it_would_find_an_access_out_of_bounds() -> None:
    done = under("memcheck", "-m", "tests.cuda.victim", "out-of-bounds")
    assert done.returncode == FOUND, done.stdout[-4000:] + done.stderr[-2000:]
