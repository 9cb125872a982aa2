"""Every form compiles for x86 processors of all kinds: LLVM ends the process on some that it cannot."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests.devices.cpu.other_processor import GROUPS


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="these are x86 processors")
@pytest.mark.parametrize("width", ["native", "warp"])
@pytest.mark.parametrize("cpu", GROUPS)
def test_every_form_compiles(cpu: str, width: str) -> None:
    command = [sys.executable, "-m", "tests.devices.cpu.other_processor", cpu, width]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 1000
