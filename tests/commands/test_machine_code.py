"""Cubins and fatbins in the place of PTX."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.commands.teeny import DEVICE, Teeny, manifest

pytestmark = pytest.mark.device

CODE = Path(__file__).parents[1] / "ptx" / "code"
SCALE = ("--entry", "scale", "--grid", "1", "-a", "x=f32[4]", "-a", "y=f32[4]", "-a", "a=f32:2", "-a", "n=u32:4")


def test_entries_lists_what_is_in_a_cubin(teeny: Teeny) -> None:
    done = teeny("entries", "-v", CODE / "sm_90.cubin")
    assert done.code == 0
    assert "sm_90 (machine code), 64-bit, 4 entries" in done.out
    assert "PTX" not in done.out
    assert "unused" not in done.out
    (file,) = teeny("entries", "--json", CODE / "sm_90.cubin").json
    assert (file["version"], file["target"]) == (None, "code_90")
    mixed = next(entry for entry in file["entries"] if entry["name"] == "mixed")
    assert [(param["offset"], param["size"]) for param in mixed["params"]] == [
        (0, 1), (2, 2), (8, 24), (48, 128), (176, 8), (184, 3), (192, 8),
    ]  # fmt: skip


def test_the_cpu_device_says_that_it_runs_ptx(teeny: Teeny) -> None:
    done = teeny("run", "--ptx", CODE / "sm_90.cubin", *SCALE, "--device", "cpu")
    assert done.code == 4
    assert "error[machine-code]: this is machine code for sm_90, and the CPU device runs PTX" in done.err


def test_a_launch_of_machine_code_is_checked_by_what_it_demands(teeny: Teeny, tmp_path: Path) -> None:
    wrong = teeny("run", "--ptx", CODE / "sm_90.cubin", *SCALE, "--block", "64", "--device", "cpu")
    assert wrong.code == 1
    assert "[block-mismatch]" in wrong.err
    few = teeny("run", "--ptx", CODE / "sm_90.cubin", *SCALE[:-2], "--device", "cpu")
    assert (few.code, "[argument-count]" in few.err) == (1, True)
    shutil.copy(CODE / "sm_90.cubin", tmp_path / "k.cubin")
    output = {"name": "y", "shape": ["4"]}
    op = {
        "ptx": "k.cubin",
        "entry": "scale",
        "grid": ["1"],
        "output": output,
        "args": ["ptr y", "ptr y", "f32 2", "u32 4"],
    }
    manifest(tmp_path, k=op)
    assert teeny("check").code == 0
    assert teeny("check", "--for", "sm_90", "--driver", "13.0").code == 0
    assert "[target-architecture]" in teeny("check", "--for", "sm_100").out


@pytest.mark.devices("cuda")
def test_a_driver_that_does_not_take_the_code_is_told_with_its_words(teeny: Teeny) -> None:
    """The stand-in driver reads PTX only, and says of machine code what a driver says of code too new for it."""
    done = teeny("run", "--ptx", CODE / "sm_90.cubin", *SCALE, *DEVICE)
    assert done.code == 4
    assert "takes this machine code for no code that it can run" in done.err
    assert "CUDA_ERROR_INVALID_IMAGE (200)" in done.err


def test_init_wants_ptx(teeny: Teeny) -> None:
    done = teeny("init", CODE / "sm_90.cubin")
    assert done.code == 2
    assert "this is a cubin (ELF), not PTX text" in done.err
