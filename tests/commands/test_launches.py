"""Several launches of one op, and rows that lie apart, from the manifest to the table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.commands.ops import cat, twice
from tests.commands.teeny import DEVICE, Teeny, manifest

# For the CPU device alone is what only it knows, a fault's place, buffers by name, its cache; and what it shows by
# running, while the check says so before a launch on a GPU.
pytestmark = [pytest.mark.device, pytest.mark.devices("cpu", "cuda")]


def test_a_launch_for_each_input(teeny: Teeny, tmp_path: Path) -> None:
    done = teeny("run", "cat", "-m", manifest(tmp_path, cat=cat()), "--case", "all", "--json", *DEVICE)
    assert done.code == 0, done.err
    assert all(one["ok"] and not one["zeros_pass"] for one in done.json["compare"])
    launches = [launch for launch in done.json["launches"] if launch["case"]["B"] == 2]
    assert [launch["index"] for launch in launches] == [0, 1, 2]
    assert [launch["grid"][0] for launch in launches] == [2, 1, 3]
    assert [launch["args"][0]["value"]["buffer"] for launch in launches] == ["a", "b", "c"]
    assert [launch["args"][2]["value"] for launch in launches] == [0, 21, 28]


def test_the_table_shows_what_differs_from_launch_to_launch(teeny: Teeny, tmp_path: Path) -> None:
    out = teeny("run", "cat", "-m", manifest(tmp_path, cat=cat()), *DEVICE).out
    assert "launches  3, one after another; this is the first" in out
    rows = [line.split() for line in out[out.index("  launch ") :].splitlines()[:4]]
    assert rows[0][:3] == ["launch", "grid", "inputs[i]"]
    assert [row[0] for row in rows[1:]] == ["0", "1", "2"]
    assert "block" not in rows[0]


def test_a_finding_says_which_launches_it_is_about(teeny: Teeny, tmp_path: Path) -> None:
    op = cat(grid=["cdiv(inputs[i].size, 32) - 1"])
    done = teeny("check", "--json", "-m", manifest(tmp_path, cat=op))
    assert done.code == 1
    (finding,) = done.json["ops"][0]["findings"]
    assert finding["id"] == "grid-zero"
    assert finding["message"].startswith("launch 1 of 3: grid 0: ")


def test_a_finding_about_every_launch_is_said_once(teeny: Teeny, tmp_path: Path) -> None:
    op = cat(args=cat()["args"][:-1])
    (finding,) = teeny("check", "--json", "-m", manifest(tmp_path, cat=op)).json["ops"][0]["findings"]
    assert finding["id"] == "argument-count"
    assert "launch" not in finding["message"]
    swapped = cat(args=["ptr y", "ptr inputs[i]", *cat()["args"][2:]])
    found = teeny("check", "--json", "-m", manifest(tmp_path, cat=swapped)).json["ops"][0]["findings"]
    assert sorted({f["id"] for f in found}) == ["input-written", "output-not-written"]


@pytest.mark.devices("cpu")
def test_launches_that_leave_some_of_the_output_out(teeny: Teeny, tmp_path: Path) -> None:
    path = manifest(tmp_path, cat=cat(launches=2))
    done = teeny("run", "cat", "-m", path, "--json", *DEVICE)
    assert done.code == 1
    assert done.json["compare"][0]["unwritten"] == 70
    assert [f["id"] for f in done.json["findings"]] == ["buffer-unused", "output-not-covered"]
    without = {key: value for key, value in cat(launches=2).items() if key != "reference"}
    done = teeny("run", "cat", "-m", manifest(tmp_path, cat=without), *DEVICE)
    assert (done.code, "output-not-covered" in done.err) == (1, True)
    assert "70 of 126 elements of 'y'" in done.err
    ignored = {**without, "ignore": {"output-not-covered": "the rest is for another op"}}
    assert teeny("run", "cat", "-m", manifest(tmp_path, cat=ignored), *DEVICE).code == 0


@pytest.mark.devices("cpu")
def test_a_fault_says_in_which_launch(teeny: Teeny, tmp_path: Path) -> None:
    args = [*cat()["args"][:-1], "i32 inputs[i].size + (1 if i == 1 else 0)"]
    done = teeny("run", "cat", "-m", manifest(tmp_path, cat=cat(args=args)), *DEVICE)
    assert (done.code, "out-of-bounds" in done.err) == (1, True)
    assert "launch 1 of 3: " in done.err


class TestRows:
    def test_what_comes_back_is_tight(self, teeny: Teeny, tmp_path: Path) -> None:
        path = manifest(tmp_path, twice=twice())
        done = teeny("run", "twice", "-m", path, "--save", "y=y.npy", "--input", "x=arange", "--json", *DEVICE)
        assert done.code == 0, done.err
        assert (done.json["compare"][0]["ok"], done.json["compare"][0]["count"]) == (True, 15)
        assert done.json["launches"][0]["args"][3]["value"] == 8
        np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), 2 * np.arange(15.0).reshape(3, 5))
        assert done.json["launches"][0]["bytes_written"] == 3 * 8 * 4

    def test_the_table_says_how_rows_lie(self, teeny: Teeny, tmp_path: Path) -> None:
        out = teeny("run", "twice", "-m", manifest(tmp_path, twice=twice()), *DEVICE).out
        assert "f32[3, 5] in rows of 5, 8 apart, 96 bytes, written" in out

    @pytest.mark.devices("cpu")
    def test_a_buffer_of_tight_rows_is_overrun(self, teeny: Teeny, tmp_path: Path) -> None:
        op = twice(row_stride=5)
        op["args"][3] = "i32 8"
        done = teeny("run", "twice", "-m", manifest(tmp_path, twice=op), *DEVICE)
        assert (done.code, "out-of-bounds" in done.err) == (1, True)

    @pytest.mark.parametrize("extra", [(), ("--no-check",)])
    def test_a_row_stride_below_the_row(self, teeny: Teeny, tmp_path: Path, extra: tuple[str, ...]) -> None:
        path = manifest(tmp_path, twice=twice(row_stride="C - 1"))
        (finding,) = teeny("check", "--json", "-m", path).json["ops"][0]["findings"]
        assert (finding["id"], finding["severity"]) == ("row-stride", "error")
        assert finding["where"].endswith("op.twice.output.row_stride")
        done = teeny("run", "twice", "-m", path, *DEVICE, *extra)
        assert (done.code, "row-stride" in done.err) == (1, True)
