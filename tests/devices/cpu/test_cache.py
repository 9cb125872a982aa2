"""The disk cache: hits, torn and scribbled files, processes side by side, and what the key depends on."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from teenycli.devices.cpu import CpuDevice
from teenycli.ptx import outline
from teenycli.ptx.model import Source
from tests.devices.cpu.kit import HEAD, Rig

pytestmark = pytest.mark.unit

TEXT = (
    HEAD
    + """
.func (.reg .b32 %o) plus(.reg .b32 %v) { add.u32 %o, %v, 7; ret; }
.visible .entry one(.param .u64 out) { .reg .b64 %d; .reg .b32 %r<3>; ld.param.u64 %d, [out]; mov.u32 %r1, 3;
call (%r2), plus, (%r1); st.global.u32 [%d], %r2; ret; }
.visible .entry two(.param .u64 out) { .reg .b64 %d; ld.param.u64 %d, [out]; st.global.u32 [%d], 2; ret; }
"""
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TEENY_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def load(text: str = TEXT, entry: str = "one") -> bool:
    """Load and run on a device of its own; whether it came from the cache."""
    device = CpuDevice(threads=1)
    rig = Rig(text, device=device)
    out = np.zeros(1, np.uint32)
    rig.run([out], block=(1,), entry=entry)
    assert out[0] in (10, 11, 2)
    cached = device.load(outline(Source("again.ptx", text)), entry).cached
    device.close()
    assert cached
    return True


def is_cached(text: str = TEXT, entry: str = "one") -> bool:
    with CpuDevice(threads=1) as device:
        return device.load(outline(Source("test.ptx", text)), entry).cached


def test_second_load_is_cached_and_the_folder_private(folder: Path) -> None:
    assert not is_cached()
    assert is_cached()
    assert len(list(folder.iterdir())) == 1
    if sys.platform != "win32":
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    load()


@pytest.mark.usefixtures("folder")
def test_what_the_key_depends_on() -> None:
    is_cached()
    assert is_cached(TEXT.replace(HEAD, HEAD.rstrip() + " \n")) is True
    assert not is_cached(TEXT.replace("%v, 7", "%v, 8"))
    assert not is_cached(entry="two")
    assert is_cached(TEXT.replace("[%d], 2;", "[%d], 3;"))  # another entry's body
    assert not is_cached(TEXT.replace("sm_100a", "sm_90"))


@pytest.mark.parametrize("harm", ["cut", "empty", "scribbled", "foreign"])
def test_a_broken_file_is_rebuilt(folder: Path, harm: str) -> None:
    is_cached()
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    middle = len(whole) // 2
    file.write_bytes({
        "cut": whole[:middle], "empty": b"", "foreign": b"something else",
        "scribbled": whole[:middle] + bytes(b ^ 0xFF for b in whole[middle : middle + 9]) + whole[middle + 9 :],
    }[harm])  # fmt: skip
    assert not is_cached()
    assert file.read_bytes() == whole
    load()


def test_no_cache_when_the_folder_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("TEENY_CACHE_DIR", str(blocked / "cache"))
    assert not is_cached()
    assert not is_cached()


def test_a_device_without_cache_writes_nothing(folder: Path) -> None:
    with CpuDevice(threads=1, cache=False) as device:
        assert not device.load(outline(Source("test.ptx", TEXT)), "one").cached
    assert not folder.exists()


def test_processes_that_start_together_on_an_empty_cache(folder: Path, tmp_path: Path) -> None:
    program = tmp_path / "use.py"
    program.write_text(
        "import sys\nfrom tests.devices.cpu.test_cache import is_cached, load\nis_cached()\nload()\nprint('fine')\n"
    )
    environment = {**os.environ, "TEENY_CACHE_DIR": str(folder), "PYTHONPATH": str(Path(__file__).parents[3])}
    running = [
        subprocess.Popen([sys.executable, str(program)], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    assert [process.communicate()[0] for process in running] == ["fine\n"] * 8
    assert not [f for f in folder.iterdir() if f.suffix == ".part"]


def test_importing_the_package_imports_neither_numpy_nor_llvmlite() -> None:
    code = "import sys, teenycli.devices.cpu; print(sorted({'numpy', 'llvmlite'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
