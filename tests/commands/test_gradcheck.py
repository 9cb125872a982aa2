"""Gradients beside central differences of the forward kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.commands.ops import Op, cat, from_output, square
from tests.commands.teeny import DEVICE, Done, Teeny, manifest

pytestmark = [pytest.mark.device, pytest.mark.devices("cpu", "cuda")]
SMALL: dict[str, Any] = {"gradcheck": {"M": 2, "N": 3}}


def gradcheck(teeny: Teeny, folder: Path, op: Op, *extra: str) -> Done:
    return teeny("run", "it", "-m", manifest(folder, it=op), "--gradcheck", *DEVICE, *extra)


@pytest.mark.parametrize(("dtype", "atol"), [("f32", 1e-3), ("f64", 1e-8)])
def test_gradients_agree_with_differences(teeny: Teeny, tmp_path: Path, dtype: str, atol: float) -> None:
    done = gradcheck(teeny, tmp_path, square(dtype, **SMALL), "--json")
    assert done.code == 0, done.err
    rows = done.json["gradcheck"]
    assert [(row["name"], row["count"], row["ok"]) for row in rows] == [
        ("grad_x", 6, True), ("grad_w", 3, True), ("grad_b", 3, True),
    ]  # fmt: skip
    assert all(row["case"] == {"M": 2, "N": 3} and row["atol"] == atol for row in rows)
    assert all(row["analytic"] != 0 for row in rows)
    assert all(abs(row["analytic"] - row["numeric"]) <= 10 * atol for row in rows)
    assert len(done.json["launches"]) == 2


def test_several_launches_and_an_activation_that_is_read(teeny: Teeny, tmp_path: Path) -> None:
    rows = gradcheck(teeny, tmp_path, cat(gradcheck={"B": 1, "W": 2}), "--json").json["gradcheck"]
    assert [(row["name"], row["count"], row["ok"]) for row in rows] == [
        ("grad_a", 6, True), ("grad_b", 2, True), ("grad_c", 10, True),
    ]  # fmt: skip
    done = gradcheck(teeny, tmp_path, from_output(gradcheck={"N": 4, "rtol": 1e-3}), "--json")
    assert [(row["name"], row["ok"], row["rtol"]) for row in done.json["gradcheck"]] == [("grad_x", True, 1e-3)]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_a_wrong_gradient_names_its_worst_element(teeny: Teeny, tmp_path: Path, dtype: str) -> None:
    op = square(dtype, **SMALL)
    op["backward"].pop("reference")
    done = gradcheck(teeny, tmp_path, op, "--set", "scale=1.1", "--json")
    assert done.code == 1
    rows = done.json["gradcheck"]
    assert [row["ok"] for row in rows] == [True, False, True]
    assert rows[1]["analytic"] == pytest.approx(1.1 * rows[1]["numeric"], rel=1e-3)
    out = gradcheck(teeny, tmp_path, op, "--set", "scale=1.1").out
    assert "gradcheck  grad_w  central differences, step" in out
    assert "MISMATCH: " in out
    assert f"worst      at {rows[1]['worst']}: analytic " in out
    quiet = gradcheck(teeny, tmp_path, op, "--set", "scale=1.1", "-q")
    assert (quiet.code, "gradient-mismatch" in quiet.err) == (1, True)


def test_step_and_tolerances_may_be_said(teeny: Teeny, tmp_path: Path) -> None:
    keys = {"step": 0.25, "rtol": 0.5, "atol": 0.0}
    done = gradcheck(teeny, tmp_path, square(gradcheck={"M": 1, "N": 1, **keys}), "--set", "scale=1.3", "--json")
    assert done.json["gradcheck"][1].items() >= {**keys, "ok": True}.items()


def test_dims_are_the_tables_and_may_be_overridden(teeny: Teeny, tmp_path: Path) -> None:
    done = gradcheck(teeny, tmp_path, square(**SMALL), "--dim", "N=4", "--json")
    assert done.json["gradcheck"][0]["case"] == {"M": 2, "N": 4}


def test_too_many_launches_are_refused_before_anything_runs(teeny: Teeny, tmp_path: Path) -> None:
    done = gradcheck(teeny, tmp_path, square(dims={"M": 1000, "N": 100}), "--json")
    assert (done.code, done.json["error"]["id"]) == (2, "gradcheck-too-large")
    assert (
        "100,200 elements take 200,400 launches of the forward kernel; at most 20,000" in done.json["error"]["message"]
    )


def test_a_step_that_leads_nowhere(teeny: Teeny, tmp_path: Path) -> None:
    done = gradcheck(teeny, tmp_path, square(gradcheck={"M": 1, "N": 1, "step": 1e-30}), "--json", "--input", "x=1")
    assert done.json["error"]["id"] == "gradcheck-step"
    assert done.code == 2


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"Q": 3}, "no dim 'Q'"), ({"N": 1.5}, "integer"), ({"step": 0}, "positive"), ({"rtol": -1}, "positive"),
        ({"scale": 2}, "'scale' is op.it.scalars.scale"),
    ],
)  # fmt: skip
def test_tables_that_are_wrong(teeny: Teeny, tmp_path: Path, table: dict[str, Any], words: str) -> None:
    done = gradcheck(teeny, tmp_path, square(gradcheck=table), "--json")
    assert (done.code, done.json["error"]["id"]) == (2, "bad-value")
    assert words in done.json["error"]["message"]


def test_what_has_no_gradients(teeny: Teeny, tmp_path: Path) -> None:
    op = square()
    op.pop("backward")
    assert gradcheck(teeny, tmp_path, op, "--json").json["error"]["id"] == "no-backward"
    assert gradcheck(teeny, tmp_path, {**op, **SMALL}, "--json").json["error"]["id"] == "bad-value"
    integers = {**from_output(dtype="i32"), "reference": "x"}
    integers["backward"].pop("reference")
    assert gradcheck(teeny, tmp_path, integers, "--no-check", "--json").json["error"]["id"] == "gradcheck-dtype"
    assert gradcheck(teeny, tmp_path, square(), "--case", "all").code == 2
