"""Faults planted in ops of ops.toml, each found by its id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands.teeny import DEVICE, Teeny, manifest, samples

# For the CPU device alone is what only it knows, a fault's place, buffers by name, its cache; and what it shows by
# running, while the check says so before a launch on a GPU.
pytestmark = [pytest.mark.device, pytest.mark.devices("cpu", "cuda")]

SAMPLES = samples()


def found(teeny: Teeny, folder: Path, command: str, op: dict[str, Any], *options: str | Path) -> tuple[int, set[str]]:
    """The exit code of a command on an op at its own dims, and the ids of what it says."""
    path = manifest(folder, it={key: value for key, value in op.items() if key not in ("reference", "cases")})
    done = teeny(command, "it", "-m", path, "--json", *options, *(DEVICE if command == "run" else ()))
    document = done.json
    rows = [*document["ops"], document] if command == "check" else [document]
    findings = [each for row in rows for each in row.get("findings", ())]
    return done.code, {each["id"] for each in [*findings, *(row["error"] for row in rows if row.get("error"))]}


@pytest.mark.parametrize("name", ["linear_cuda", "conv_bn_silu_triton"])
def test_a_row_stride_below_the_row(teeny: Teeny, tmp_path: Path, name: str) -> None:
    op = SAMPLES[name]
    op = {**op, "output": {**op["output"], "row_stride": f"{op['output']['shape'][-1]} - 1"}}
    for command in ("check", "run"):
        assert found(teeny, tmp_path, command, op) == (1, {"row-stride"})


@pytest.mark.devices("cpu")
@pytest.mark.parametrize("name", ["linear_cuda", "conv_bn_silu_triton"])
def test_rows_as_they_are_where_the_kernel_is_told_of_padded_ones(teeny: Teeny, tmp_path: Path, name: str) -> None:
    op = SAMPLES[name]
    last = op["output"]["shape"][-1]
    output = {key: value for key, value in op["output"].items() if key != "row_stride"}
    args = [arg.replace("y.row_stride", "align(N, 4)").replace("out.row_stride", "align(W, 16)") for arg in op["args"]]
    assert op["dims"][last] % 4
    code, ids = found(teeny, tmp_path, "run", {**op, "output": output, "args": args})
    assert (code, ids & {"out-of-bounds", "output-not-covered"} != set()) == (1, True)


def test_rows_of_a_tensor_map_that_are_no_multiple_of_16_bytes(teeny: Teeny, tmp_path: Path) -> None:
    op = SAMPLES["scale_tma_cuda"]
    op = {**op, "output": {**op["output"], "row_stride": "align(COLS, 4) + 1"}}
    for command in ("check", "run"):
        assert found(teeny, tmp_path, command, op) == (1, {"tensormap-stride"})


def test_a_launch_too_few(teeny: Teeny, tmp_path: Path) -> None:
    op = {**SAMPLES["channel_cat_cuda"], "launches": "len(inputs) - 1"}
    assert found(teeny, tmp_path, "run", op) == (1, {"buffer-unused", "output-not-covered"})


@pytest.mark.parametrize("grid", [None, [0], ["cdiv(N, BLOCK) - cdiv(N, BLOCK)"]])
@pytest.mark.parametrize("name", ["gelu_triton", "vector_add_cuda"])
def test_a_backward_grid_that_is_missing_or_zero(teeny: Teeny, tmp_path: Path, name: str, grid: Any) -> None:
    op = samples(backward=True)[name]
    backward = {key: value for key, value in op["backward"].items() if key not in ("grid", "reference")}
    op = {**op, "backward": {**backward, "grid": grid} if grid else backward}
    code, ids = found(teeny, tmp_path, "check", op)
    assert (code != 0, ids) == (True, {"backward-grid"})
    code, ids = found(teeny, tmp_path, "run", op, "--backward")
    assert (code != 0, ids) == (True, {"backward-grid"})


def test_a_gradient_that_no_launch_makes(teeny: Teeny, tmp_path: Path) -> None:
    op = samples(backward=True)["linear_cuda"]
    op = {**op, "backward": {**op["backward"], "launches": 1}}
    done = teeny("run", "it", "-m", manifest(tmp_path, it=op), "--backward", "--json", *DEVICE)
    assert (done.code, done.json["error"]["id"]) == (2, "reference-count")


@pytest.mark.parametrize("difference", [-1, 1])
def test_initial_bytes_too_few_or_too_many(teeny: Teeny, tmp_path: Path, difference: int) -> None:
    op = SAMPLES["conv_bn_silu_cuda"]
    (tmp_path / "mean.bin").write_bytes(bytes(4 * op["dims"]["OC"] + difference))
    params = [{**p, "init": "mean.bin"} if p["name"] == "mean" else p for p in op["params"]]
    for command in ("check", "run"):
        assert found(teeny, tmp_path, command, {**op, "params": params}) == (1, {"byte-count"})


def checkpoint(folder: Path, **arrays: tuple[int, ...]) -> Path:
    """A .safetensors file of zeros under ``model.0.NAME``."""
    numpy = pytest.importorskip("safetensors.numpy")
    path = folder / "model.safetensors"
    numpy.save_file({f"model.0.{name}": np.zeros(shape, np.float32) for name, shape in arrays.items()}, path)
    return path


def without_inits(name: str) -> dict[str, Any]:
    op = SAMPLES[name]
    return {**op, "params": [{key: value for key, value in p.items() if key != "init"} for p in op["params"]]}


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_checkpoint_without_a_param(teeny: Teeny, tmp_path: Path, command: str) -> None:
    path = checkpoint(tmp_path, w=(21, 50))
    options = ("--checkpoint", path, "--node", "model.0")
    code, ids = found(teeny, tmp_path, command, without_inits("linear_cuda"), *options)
    assert (code != 0, ids) == (True, {"checkpoint-key"})


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_param_of_another_shape(teeny: Teeny, tmp_path: Path, command: str) -> None:
    path = checkpoint(tmp_path, w=(50, 21), b=(21,))
    options = ("--checkpoint", path, "--node", "model.0")
    code, ids = found(teeny, tmp_path, command, without_inits("linear_cuda"), *options)
    assert (code != 0, ids) == (True, {"array-shape"})
