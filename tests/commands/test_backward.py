"""The backward of an op: planned, checked and run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands.ops import Op, cat, from_output, square, twice
from tests.commands.teeny import DEVICE, Teeny, manifest

# For the CPU device alone is what only it knows, a fault's place, buffers by name, its cache; and what it shows by
# running, while the check says so before a launch on a GPU.
pytestmark = [pytest.mark.device, pytest.mark.devices("cpu", "cuda")]


def changed(op: Op, **keys: Any) -> Op:
    """The op with keys of its backward changed, those that are None taken out."""
    backward = {key: value for key, value in {**op["backward"], **keys}.items() if value is not None}
    return {**op, "backward": backward}


def run(teeny: Teeny, folder: Path, op: Op, *extra: str) -> Any:
    return teeny("run", "it", "-m", manifest(folder, it=op), "--backward", "--json", *DEVICE, *extra)


def findings(teeny: Teeny, folder: Path, op: Op) -> dict[str, list[str]]:
    """Ids of what check says, by row."""
    rows = teeny("check", "--json", "-m", manifest(folder, it=op)).json["ops"]
    return {row["op"]: [f["id"] for f in (*row["findings"], *filter(None, [row["error"]]))] for row in rows}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_gradients_are_those_of_the_reference(teeny: Teeny, tmp_path: Path, dtype: str) -> None:
    done = run(teeny, tmp_path, square(dtype))
    assert done.code == 0, done.err
    assert [(one["op"], one["name"], one["ok"], one["zeros_pass"]) for one in done.json["compare"]] == [
        ("it", "y", True, False), ("it.backward", "grad_x", True, False), ("it.backward", "grad_w", True, False),
        ("it.backward", "grad_b", True, False),
    ]  # fmt: skip
    assert [(launch["op"], launch["entry"]) for launch in done.json["launches"]] == [
        ("it", f"square_{dtype}"), ("it.backward", f"square_{dtype}_backward"),
    ]  # fmt: skip


def test_the_tables_of_both_are_shown(teeny: Teeny, tmp_path: Path) -> None:
    out = teeny("run", "it", "-m", manifest(tmp_path, it=square()), "--backward", *DEVICE).out
    assert out.index("square_f32  in") < out.index("it.backward  M=3, N=5") < out.index("square_f32_backward  in")
    assert "grad_inputs[0]" in out


def test_a_launch_for_each_gradient(teeny: Teeny, tmp_path: Path) -> None:
    done = run(teeny, tmp_path, cat(), "--case", "all")
    assert done.code == 0, done.err
    assert [one["name"] for one in done.json["compare"]] == ["y", "grad_a", "grad_b", "grad_c"] * 2
    launches = [launch for launch in done.json["launches"] if launch["op"] == "it.backward"]
    assert [launch["args"][1]["value"]["buffer"] for launch in launches] == ["grad_a", "grad_b", "grad_c"] * 2


def test_the_output_is_the_real_activation(teeny: Teeny, tmp_path: Path) -> None:
    done = run(teeny, tmp_path, from_output(), "--input", "grad_output=0.5", "--save", "grad_x=g.npy")
    assert done.code == 0, done.err
    np.testing.assert_allclose(np.load(tmp_path / "g.npy"), np.arange(40.0), rtol=1e-6)


def test_a_gradient_that_no_argument_names_is_none(teeny: Teeny, tmp_path: Path) -> None:
    assert [one["name"] for one in run(teeny, tmp_path, from_output()).json["outputs"]] == ["y", "grad_x"]


def test_a_gradient_that_stays_zero_is_noted(teeny: Teeny, tmp_path: Path) -> None:
    op = square()
    kept = [arg for arg in op["backward"]["args"] if arg != "ptr grad_params[1]"]
    kept.insert(6, "ptr null")
    (row,) = teeny("check", "--json", "-m", manifest(tmp_path, it=changed(op, args=kept))).json["ops"][1:]
    found = {f["id"]: f for f in row["findings"]}
    assert found["gradient-not-asked-for"]["severity"] == "note"
    assert "'b'" in found["gradient-not-asked-for"]["message"]
    assert found["access-null"]["severity"] == "error"  # the kernel writes it without a test


def test_rows_of_the_incoming_gradient_may_lie_apart(teeny: Teeny, tmp_path: Path) -> None:
    done = run(teeny, tmp_path, changed(square(), grad_output_row_stride="align(N, 8)"))
    assert done.code == 0, done.err
    backward = done.json["launches"][1]
    assert backward["args"][9]["value"] == 8
    assert all(one["ok"] for one in done.json["compare"])
    assert findings(teeny, tmp_path, changed(square(), grad_output_row_stride="N - 1"))["it.backward"] == ["row-stride"]
    assert run(teeny, tmp_path, changed(square(), grad_output_row_stride=0)).json["error"]["id"] == "bad-value"


def test_a_function_may_return_a_dict(teeny: Teeny, tmp_path: Path) -> None:
    (tmp_path / "refs.py").write_text(
        "def back(inputs, params, output, grad_output, N, scale):\n"
        "    (x,), (w, b) = inputs, params\n"
        "    assert output.shape == (3, N) and scale == 1\n"
        "    g = 2 * (x * w + b) * grad_output\n"
        "    return {'grad_w': (g * x).sum(0), 'grad_b': g.sum(0), 'grad_x': g * w}\n"
    )
    done = run(teeny, tmp_path, changed(square(), reference="refs:back"))
    assert done.code == 0, done.err
    assert len(done.json["compare"]) == 4


def test_a_wrong_gradient_is_a_mismatch(teeny: Teeny, tmp_path: Path) -> None:
    done = run(teeny, tmp_path, square(), "--set", "scale=1.01")
    assert done.code == 1
    assert [one["ok"] for one in done.json["compare"]] == [True, True, False, True]


@pytest.mark.parametrize("grid", [None, [0], ["cdiv(N - 5, 32)"], [1, -1]])
def test_a_grid_that_is_missing_or_zero(teeny: Teeny, tmp_path: Path, grid: object) -> None:
    op = changed(square(), grid=grid)
    assert findings(teeny, tmp_path, op) == {"it": [], "it.backward": ["backward-grid"]}
    done = run(teeny, tmp_path, op)
    assert (done.code, done.json["error"]["id"]) == (1, "backward-grid")
    where = "op.it.backward" if grid is None else "op.it.backward.grid"
    assert done.json["error"]["where"].endswith(where)
    assert teeny("run", "it", "-m", tmp_path / "ops.toml", *DEVICE).code == 0  # the forward alone


@pytest.mark.parametrize(
    ("change", "id"),
    [
        ({"args": ["ptr x"]}, "argument-count"), ({"block": [2000]}, "block-limit"),
        ({"args": [*square()["backward"]["args"][:-1], "f64 scale"]}, "argument-width"),
        ({"args": [*square()["backward"]["args"][:3], "ptr grad_x", "ptr grad_output",
                   *square()["backward"]["args"][5:]]}, "input-written"),
        ({"entry": "square_f32_backwards"}, "unknown-entry"), ({"grid": ["M +"]}, "expression-syntax"),
        ({"grids": [1]}, "unknown-key"), ({"args": None}, "missing-key"), ({"launches": 0}, "bad-value"),
        ({"consts": {"N": 3}}, "name-twice"), ({"args": ["ptr grad_inputs[1]"]}, "expression-failed"),
        ({"hidden": 5}, "bad-value"), ({"grid": ["Q"]}, "unknown-name"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_backward_is_said_of_it(
    teeny: Teeny, tmp_path: Path, change: dict[str, Any], id: str
) -> None:
    found = findings(teeny, tmp_path, changed(square(), **change))
    assert id in found.get("it.backward", found["it"])


def test_its_own_consts_and_ptx(teeny: Teeny, tmp_path: Path) -> None:
    (tmp_path / "other.ptx").write_bytes(Path(square()["ptx"]).read_bytes())
    op = {**changed(square(), consts={"T": 16}, ptx="other.ptx", grid=["cdiv(N, T)"], block=["T"]), "consts": {"T": 32}}
    done = run(teeny, tmp_path, op)
    assert done.code == 0, done.err
    assert [launch["block"][0] for launch in done.json["launches"]] == [32, 16]


@pytest.mark.devices("cpu")
def test_a_fault_in_it_leaves_what_the_forward_gave(teeny: Teeny, tmp_path: Path) -> None:
    args = [*square()["backward"]["args"][:-3], "i32 N + 1", "i32 N", "f32 scale"]
    done = run(teeny, tmp_path, changed(square(), args=args))
    assert (done.code, done.json["error"]["id"]) == (1, "out-of-bounds")
    assert [(launch["op"], launch["ms"] is None) for launch in done.json["launches"]] == [
        ("it", False), ("it.backward", True),
    ]  # fmt: skip
    assert [one["name"] for one in done.json["compare"]] == ["y"]


def test_an_op_without_one(teeny: Teeny, tmp_path: Path) -> None:
    op = {key: value for key, value in square().items() if key != "backward"}
    done = run(teeny, tmp_path, op)
    assert (done.code, done.json["error"]["id"]) == (2, "no-backward")


def test_an_op_of_two_outputs_has_none(teeny: Teeny, tmp_path: Path) -> None:
    op = {key: value for key, value in square().items() if key != "output"}
    op["outputs"] = [{"name": "y", "shape": ["M", "N"]}, {"name": "z", "shape": [1]}]
    assert findings(teeny, tmp_path, op) == {"it": ["bad-value"]}


def test_expectations_and_inputs_of_gradients(teeny: Teeny, tmp_path: Path) -> None:
    path = manifest(tmp_path, it=from_output())
    run = ("run", "it", "-m", path, "--backward", *DEVICE)
    assert teeny(*run, "--save", "grad_x=g.npy", "--save", "y=y.npy").code == 0
    assert teeny(*run, "--expect", "grad_x=@g.npy", "--expect", "y=@y.npy").code == 0
    assert teeny(*run, "--seed", "1", "--expect", "grad_x=@g.npy").code == 1
    assert teeny(*run, "--expect", "grad_z=@g.npy").code == 2
    assert teeny("run", "it", "-m", path, "--input", "grad_output=1", *DEVICE).code == 2


def test_an_output_in_place_has_overwritten_its_input(teeny: Teeny, tmp_path: Path) -> None:
    (tmp_path / "refs.py").write_text(
        "def back(x, output, grad_output):\n    assert (output == 2 * x).all()\n    return 2 * grad_output\n"
    )
    op = twice()
    op["output"] = {"name": "y", "inout": "x"}
    op["args"] = ["ptr x", "ptr y", "i32 C", "i32 C", "i32 0"]
    op["backward"] = {"entry": "twice", "grid": ["R"], "block": [32], "reference": "refs:back",
                      "args": ["ptr grad_output", "ptr grad_x", "i32 C", "i32 C", "i32 0"]}  # fmt: skip
    done = run(teeny, tmp_path, op, "--gradcheck")
    assert done.code == 0, done.err
    assert [(one["name"], one["ok"]) for one in done.json["compare"]] == [("y", True), ("grad_x", True)]
    assert done.json["gradcheck"][0]["ok"]


@pytest.mark.parametrize(
    ("keys", "id"),
    [
        ({"backward": 3}, "wrong-type"), ({"backward": []}, "wrong-type"), ({"backward": {}}, "missing-key"),
        ({"gradcheck": 3}, "wrong-type"), ({"gradcheck": {"N": "3"}}, "wrong-type"), ({"tensormaps": 3}, "wrong-type"),
        ({"tensormaps": {"d": {}}}, "missing-key"), ({"launches": [1]}, "wrong-type"),
        ({"launches": 10**9}, "bad-value"),
    ],
)  # fmt: skip
def test_keys_of_the_wrong_kind(teeny: Teeny, tmp_path: Path, keys: dict[str, Any], id: str) -> None:
    assert findings(teeny, tmp_path, {**square(), **keys})["it"] == [id]


def test_a_key_of_the_op_below_its_backward_has_a_hint(teeny: Teeny, tmp_path: Path) -> None:
    op = square()
    backward = op.pop("backward")
    path = manifest(tmp_path, it=op)
    lines = "".join(f"{key} = {value!r}\n" for key, value in {**backward, "cases": []}.items())
    path.write_text(f"{path.read_text()}[op.it.backward]\n{lines}")
    error = teeny("check", "--json", "-m", path).json["ops"][0]["error"]
    assert error["id"] == "unknown-key"
    assert "write it above [op.it.backward]" in error["hint"]
