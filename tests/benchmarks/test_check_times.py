"""What ``teeny check`` is measured with: the manifests and their PTX files, without a clock."""

from __future__ import annotations

import pytest

from benchmarks.check_times import KERNEL, MANIFEST, Spent, compared, ptx_files
from benchmarks.timing import Figure
from tests.commands.teeny import Teeny

pytestmark = pytest.mark.unit


def test_the_kernel_is_one_of_4400_lines() -> None:
    (file,) = ptx_files(KERNEL)
    assert 4_400 <= file.read_text().count("\n") <= 4_420


def test_each_file_of_the_manifest_counts_once_and_those_of_backwards_too() -> None:
    names = [file.relative_to(MANIFEST.parent).as_posix() for file in ptx_files(MANIFEST)]
    assert len(set(names)) == len(names) > 15
    assert {"ptx/cuda/linear.ptx", "ptx/cuda/softmax_backward.ptx", "ptx/triton/gelu.ptx"} <= set(names)


def test_nothing_is_wrong_with_the_launch_that_is_measured(teeny: Teeny) -> None:
    (row,) = teeny("check", "--json", "-m", KERNEL).json["ops"]
    assert [(each["id"], each["severity"]) for each in row["findings"]] == [("shared-optin", "note")]


def test_the_limit_is_on_processor_time() -> None:
    cpu, wall = compared("x", [Spent(8, 90), Spent(6, 70)], [Spent(2, 10)], 4)
    assert (cpu.ours, cpu.base, cpu.limit, cpu.ok) == (Figure(7, 6), Figure(2, 2), 4, True)
    assert (wall.ours, wall.ratio, wall.limit) == (Figure(80, 70), 8, None)
    assert [row.ratio for row in compared("x", [Spent(8, 90)], [], 4)] == [None, None]
