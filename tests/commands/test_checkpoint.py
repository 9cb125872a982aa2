"""Params out of a .safetensors file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands.ops import square
from tests.commands.teeny import DEVICE, Done, Teeny, manifest

pytestmark = [pytest.mark.device, pytest.mark.devices("cpu", "cuda")]

safetensors = pytest.importorskip("safetensors.numpy")
W, B = np.arange(5.0, dtype=np.float64), np.full(5, 0.5, np.float16)
RUN = ("run", "it", "--checkpoint", "model.safetensors", "--node", "model.0.conv", "--json")
CHECK = ("check", "it", *RUN[2:])


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path) -> None:
    manifest(tmp_path, it=square())


def save(folder: Path, **arrays: Any) -> None:
    safetensors.save_file({f"model.0.conv.{name}": array for name, array in arrays.items()},
                          folder / "model.safetensors")  # fmt: skip


def run(teeny: Teeny, *extra: str) -> Done:
    return teeny(*RUN, *DEVICE, *extra)


def test_params_are_the_nodes_arrays_in_their_own_dtype(teeny: Teeny, tmp_path: Path) -> None:
    save(tmp_path, w=W, b=B)
    done = run(teeny, "--input", "x=2", "--save", "y=y.npy")
    assert done.code == 0, done.err
    np.testing.assert_array_equal(np.load("y.npy"), np.tile((2 * W + 0.5) ** 2, (3, 1)).astype(np.float32))
    assert teeny(*CHECK).code == 0


def test_input_goes_before_the_checkpoint(teeny: Teeny, tmp_path: Path) -> None:
    save(tmp_path, w=W, b=B)
    assert run(teeny, "--input", "x=2", "--input", "w=1", "--save", "y=y.npy").code == 0
    np.testing.assert_array_equal(np.load("y.npy"), np.full((3, 5), 6.25, np.float32))


def test_a_param_with_an_init_may_be_missing(teeny: Teeny, tmp_path: Path) -> None:
    save(tmp_path, b=B)
    assert run(teeny).code == 0  # w keeps its own


@pytest.mark.parametrize("command", ["run", "check"])
def test_a_key_that_is_not_there_lists_those_near_it(teeny: Teeny, tmp_path: Path, command: str) -> None:
    save(tmp_path, w=W, bias=B)
    done = run(teeny) if command == "run" else teeny(*CHECK)
    assert done.code == 2
    error = done.json["error"] if command == "run" else done.json["ops"][0]["error"]
    assert error["id"] == "checkpoint-key"
    assert "'model.0.conv.b' for the param 'b'" in error["message"]
    assert "model.0.conv.bias" in error["hint"]
    other = run(teeny, "--node", "encoder")
    assert "it holds model.0.conv." in other.json["error"]["hint"]


@pytest.mark.parametrize("command", ["run", "check"])
def test_a_param_of_the_wrong_shape_names_both(teeny: Teeny, tmp_path: Path, command: str) -> None:
    save(tmp_path, w=W, b=np.zeros((5, 1), np.float32))
    done = run(teeny) if command == "run" else teeny(*CHECK)
    assert done.code == 1
    finding = done.json["error"] if command == "run" else done.json["ops"][0]["findings"][0]
    assert finding["id"] == "array-shape"
    assert "model.0.conv.b: its shape is [5, 1], not [5]" in finding["message"]


def test_a_value_that_the_dtype_cannot_hold(teeny: Teeny, tmp_path: Path) -> None:
    save(tmp_path, w=np.full(5, 1e300), b=B)
    assert run(teeny).json["error"]["id"] == "value-out-of-range"


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("run", "it", "--checkpoint", "m.safetensors"), "go together"),
        (("run", "it", "--node", "a"), "go together"),
        (("check", "--checkpoint", "m.safetensors", "--node", "a"), "name one op"),
        (("run", "it", "--checkpoint", "m.npz", "--node", "a"), "no .safetensors file"),
        (("run", "it", "--checkpoint", "m.safetensors", "--node", "a"), "no such file"),
        (("run", "--ptx", "k.ptx", "--grid", "1", "--checkpoint", "m.safetensors"), "without --ptx"),
    ],
)  # fmt: skip
def test_options_that_are_wrong(teeny: Teeny, args: tuple[str, ...], word: str) -> None:
    done = teeny(*args)
    assert done.code == 2
    assert word in done.err
