from __future__ import annotations

from pathlib import Path

import pytest

from teenycli.arch import parse_target, target_since
from teenycli.ptx import outline, read_source
from tests.checks.ops import Op, findings, found, kernel
from tests.commands.teeny import ROOT, Teeny, samples

pytestmark = pytest.mark.unit

SAMPLES = samples()
ARCHITECTURE = {("target-architecture", "error")}


def empty(folder: Path, target: str, version: str = "9.0", **keys: object) -> Op:
    ptx = kernel(folder, "", "", target)
    text = (folder / ptx).read_text()
    (folder / ptx).write_text(text.replace(".version 8.7", f".version {version}"))
    return {"ptx": ptx, "args": [], "grid": [1], "block": [32], **keys}


@pytest.mark.parametrize(
    ("target", "gpu", "runs"),
    [
        ("sm_80", "sm_90", True), ("sm_80", "80", True), ("sm_90", "sm_80", False), ("sm_90a", "sm_90", True),
        ("sm_90a", "sm_90a", True), ("sm_90a", "sm_100", False), ("sm_100f", "sm_103", True),
        ("sm_100f", "sm_120", False), ("sm_100f", "sm_90", False),
    ],
)  # fmt: skip
def test_the_gpu_runs_the_target(teeny: Teeny, tmp_path: Path, target: str, gpu: str, runs: bool) -> None:
    assert found(teeny, tmp_path, empty(tmp_path, target), "--for", gpu) == (set() if runs else ARCHITECTURE)


def test_limits_are_the_gpus(teeny: Teeny, tmp_path: Path) -> None:
    op = empty(tmp_path, "sm_80", shared=120_000)
    assert "shared-limit" not in {id for id, _ in found(teeny, tmp_path, op)}
    assert ("shared-limit", "error") in found(teeny, tmp_path, op, "--for", "sm_86")
    assert "shared-limit" not in {id for id, _ in found(teeny, tmp_path, op, "--for", "sm_90")}
    clustered = empty(tmp_path, "sm_90", cluster=[2], grid=[2])
    assert found(teeny, tmp_path, clustered) == set()
    assert found(teeny, tmp_path, clustered, "--for", "sm_89") == ARCHITECTURE | {("cluster-limit", "error")}


@pytest.mark.parametrize(
    ("version", "driver", "takes"),
    [("8.7", "570", True), ("8.8", "570.86.15", False), ("8.8", "12.9", True), ("9.0", "CUDA 12.9", False)],
)
def test_the_driver_takes_the_version(teeny: Teeny, tmp_path: Path, version: str, driver: str, takes: bool) -> None:
    done = findings(teeny, tmp_path, empty(tmp_path, "sm_80", version), "--driver", driver)
    assert [each["id"] for each in done] == ([] if takes else ["ptx-version"])
    if not takes:
        assert f"PTX {version} needs a driver of CUDA" in done[0]["message"]


def test_what_is_no_gpu_or_driver(teeny: Teeny) -> None:
    for option, value, id in (("--for", "hopper", "unknown-target"), ("--driver", "new", "unknown-driver")):
        done = teeny("check", "-m", ROOT / "ops.toml", option, value)
        assert (done.code, id in done.err) == (2, True)


def test_pipelines_and_backwards_are_for_the_gpu_too(teeny: Teeny) -> None:
    done = teeny("check", "-m", ROOT / "ops.toml", "--for", "sm_70", "--json")
    assert done.code == 1
    rows = {row["op"] for row in done.json["ops"] if any(f["id"] == "target-architecture" for f in row["findings"])}
    assert {"pipeline.head", "gelu_triton.backward", "gelu_triton"} <= rows


def test_a_version_that_knows_no_such_target(teeny: Teeny, tmp_path: Path) -> None:
    assert found(teeny, tmp_path, empty(tmp_path, "sm_90", "7.0")) == {("target-version", "error")}
    assert found(teeny, tmp_path, empty(tmp_path, "sm_90a", "7.8")) == {("target-version", "error")}
    assert found(teeny, tmp_path, empty(tmp_path, "sm_90", "7.8")) == set()


def test_what_compilers_write_agrees_with_itself() -> None:
    for path in [*ROOT.glob("ptx/**/*.ptx"), *ROOT.glob("tests/corpus/[a-gi-z]*/*.ptx")]:
        module = outline(read_source(path))
        assert (target_since(parse_target(module.target)) or (0, 0)) <= module.version, path
