"""Ops in a row, from names or a manifest's pipeline to what comes out of the last."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands.ops import twice
from tests.commands.teeny import DEVICE, ROOT, Done, Teeny, manifest, samples

# For the CPU device alone is what only it knows, a fault's place, buffers by name, its cache; and what it shows by
# running, while the check says so before a launch on a GPU.
pytestmark = [pytest.mark.device, pytest.mark.devices("cpu", "cuda")]
SAMPLES = samples()
Ops = dict[str, dict[str, Any]]

OPS: Ops = {
    "linear": SAMPLES["linear_cuda"], "softmax": SAMPLES["softmax_cuda"], "gelu": SAMPLES["gelu_triton"],
    "add": SAMPLES["vector_add_cuda"], "sum": SAMPLES["row_sum_triton"], "accumulate": SAMPLES["accumulate_cuda"],
}  # fmt: skip


def write(folder: Path, pipeline: str = "", **ops: dict[str, Any]) -> Path:
    """A manifest of small ops and ``[pipeline.head]``."""
    path = manifest(folder, **{**OPS, **ops})
    path.write_text(path.read_text("utf-8") + (f"[pipeline.head]\n{pipeline}\n" if pipeline else ""), "utf-8")
    return path


class Memory:
    """What the CPU device holds, by the names that buffers went up with."""

    def __init__(self) -> None:
        self.held: list[str] = []
        self.uploaded: list[str] = []
        self.most = 0


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    from teenycli.devices.cpu.device import CpuDevice

    counted = Memory()
    upload, free = CpuDevice.upload, CpuDevice.free

    def counting_upload(self: Any, name: str, *rest: Any) -> Any:
        counted.held.append(name)
        counted.uploaded.append(name)
        counted.most = max(counted.most, len(counted.held))
        return upload(self, name, *rest)

    def counting_free(self: Any, buffer: Any) -> None:
        counted.held.remove(buffer.name)
        free(self, buffer)

    monkeypatch.setattr(CpuDevice, "upload", counting_upload)
    monkeypatch.setattr(CpuDevice, "free", counting_free)
    yield counted
    assert counted.held == []


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def ids(done: Done) -> list[str]:
    return [finding["id"] for row in done.json["ops"] for finding in row["findings"]]


class TestByName:
    @pytest.mark.devices("cpu")
    def test_each_output_is_the_next_ones_input(self, teeny: Teeny, tmp_path: Path, memory: Memory) -> None:
        path, out = write(tmp_path), tmp_path / "y.npy"
        inputs = ("--input", "x=arange", "--input", "add.y=ones", "--input", "src=2")
        args = (*inputs, "--save", f"sum={out}", "--dim", "N=9")
        done = teeny("run", "gelu", "add", "accumulate", "-m", path, *args, "--json", *DEVICE)
        assert done.code == 0, done.err
        np.testing.assert_allclose(np.load(out), gelu(np.arange(9.0)) + 3, rtol=1e-5)
        assert [one["op"] for one in done.json["ops"]] == ["gelu", "add", "accumulate"]
        assert [one["wired"] for one in done.json["ops"]] == [{}, {"x": "gelu.out"}, {"dst": "add.out"}]
        assert [one["ok"] for one in done.json["ops"]] == [True] * 3
        assert not any(one["zeros_pass"] for one in done.json["compare"])
        assert [launch["op"] for launch in done.json["launches"]] == ["gelu", "add", "accumulate"]
        # What is wired never goes up again.
        assert sorted(memory.uploaded) == sorted(["x", "gelu.out", "y", "add.out", "src"])

    def test_what_is_read_no_more_is_freed(self, teeny: Teeny, tmp_path: Path, memory: Memory) -> None:
        done = teeny("run", *["gelu"] * 6, "-m", write(tmp_path), "--dim", "N=50", "--json", *DEVICE)
        assert done.code == 0, done.err
        assert [one["op"] for one in done.json["ops"]][:3] == ["gelu", "gelu#2", "gelu#3"]
        assert (len(memory.uploaded), memory.most) == (7, 2)

    def test_dims_are_read_off_what_an_op_is_given(self, teeny: Teeny, tmp_path: Path) -> None:
        done = teeny("run", "linear", "softmax", "linear", "-m", write(tmp_path), "--dim", "M=7", "--json", *DEVICE)
        assert done.code == 0, done.err
        cases = [one["case"] for one in done.json["ops"]]
        assert cases == [{"M": 7, "N": 21, "K": 50}, {"ROWS": 7, "COLS": 21}, {"M": 7, "N": 21, "K": 21}]
        # The rows of the first lie 24 apart, and the second is told so.
        assert [launch["args"][3]["value"] for launch in done.json["launches"]][1] == 24

    def test_a_dim_of_one_op(self, teeny: Teeny, tmp_path: Path) -> None:
        args = ("--dim", "N=8", "--dim", "linear#2.N=5", "--json", *DEVICE)
        done = teeny("run", "linear", "linear", "-m", write(tmp_path), *args)
        assert done.code == 0, done.err
        assert [(one["case"]["N"], one["case"]["K"]) for one in done.json["ops"]] == [(8, 50), (5, 8)]

    def test_the_table_has_every_launch_and_the_last_output(self, teeny: Teeny, tmp_path: Path) -> None:
        args = ("run", "gelu", "add", "-m", write(tmp_path), *DEVICE)
        out = teeny(*args).out
        rows = [line.split()[:3] for line in out[out.index("launches in order") :].splitlines()[2:4]]
        assert rows == [["0", "gelu", "gelu"], ["1", "add", "vector_add"]]
        assert "wired   x = gelu.out" in out
        assert (out.count("output  "), teeny(*args, "-v").out.count("output  ")) == (1, 2)

    def test_an_op_in_the_middle_that_is_wrong_is_shown(self, teeny: Teeny, tmp_path: Path) -> None:
        path = write(tmp_path, add={**OPS["add"], "reference": "x - y"})
        done = teeny("run", "gelu", "add", "gelu", "-m", path, *DEVICE)
        assert done.code == 1
        assert "MISMATCH" in done.out
        ops = teeny("run", "gelu", "add", "gelu", "-m", path, "--json", *DEVICE).json["ops"]
        # The third is held against what it was given, and is right.
        assert [one["ok"] for one in ops] == [True, False, True]

    def test_outputs_of_any_op_are_saved_and_expected(self, teeny: Teeny, tmp_path: Path) -> None:
        path, first, last = write(tmp_path), tmp_path / "first.npy", tmp_path / "last.npy"
        args = ("run", "gelu", "gelu", "-m", path, *DEVICE)
        assert teeny(*args, "--save", f"gelu.out={first}", "--save", f"out={last}").code == 0
        np.testing.assert_allclose(np.load(last), gelu(np.load(first).astype(float)), atol=1e-5)
        assert teeny(*args, "--expect", f"gelu.out=@{first}", "--expect", f"gelu#2.out=@{last}").code == 0
        assert teeny(*args, "--expect", f"gelu.out=@{last}").code == 1
        done = teeny(*args, "--save", "gelu.owt=x.npy")
        assert (done.code, "did you mean 'gelu.out'?" in done.err) == (2, True)

    @pytest.mark.devices("cpu")
    def test_a_fault_in_the_middle(self, teeny: Teeny, tmp_path: Path, memory: Memory) -> None:
        path = write(tmp_path, add={**OPS["add"], "args": [*OPS["add"]["args"][:-1], "i32 N + 7"]})
        done = teeny("run", "gelu", "add", "gelu", "-m", path, "--json", *DEVICE)
        assert (done.code, done.json["error"]["id"]) == (1, "out-of-bounds")
        assert [one["op"] for one in done.json["ops"]] == ["gelu", "add"]
        assert memory.uploaded.count("gelu.out") == 1

    @pytest.mark.parametrize("options", [("--case", "0"), ("--backward",), ("--checkpoint", "x.safetensors")])
    def test_options_of_one_op(self, teeny: Teeny, tmp_path: Path, options: tuple[str, ...]) -> None:
        done = teeny("run", "gelu", "gelu", "-m", write(tmp_path), *options)
        assert (done.code, f"{options[0]} goes with one op" in done.err) == (2, True)

    def test_what_is_wired_cannot_be_filled(self, teeny: Teeny, tmp_path: Path) -> None:
        done = teeny("run", "gelu", "gelu", "-m", write(tmp_path), "--input", "gelu#2.x=ones", *DEVICE)
        assert (done.code, "'x' of 'gelu#2' is filled by 'gelu.out'" in done.err) == (2, True)


class TestPipelines:
    @pytest.mark.devices("cpu")
    def test_an_earlier_output_is_read_again(self, teeny: Teeny, tmp_path: Path, memory: Memory) -> None:
        path = write(tmp_path, """ops = ["gelu", "add", "add"]
wire = { "add#2.y" = "gelu.out" }
dims = { N = 6 }""")  # fmt: skip
        out = tmp_path / "y.npy"
        args = ("--input", "gelu.x=arange", "--input", "add.y=zeros", "--save", f"out={out}", "--json", *DEVICE)
        done = teeny("run", "head", "-m", path, *args)
        assert done.code == 0, done.err
        np.testing.assert_allclose(np.load(out), 2 * gelu(np.arange(6.0)), rtol=1e-5)
        assert done.json["ops"][2]["wired"] == {"y": "gelu.out", "x": "add.out"}
        assert memory.uploaded == ["x", "gelu.out", "y", "add.out", "out"]

    @pytest.mark.devices("cpu")
    def test_an_output_written_in_place_is_copied_where_others_read_it(
        self, teeny: Teeny, tmp_path: Path, memory: Memory
    ) -> None:
        path = write(tmp_path, """ops = ["gelu", "accumulate", "add"]
wire = { "add.y" = "gelu.out", "add.x" = "accumulate.sum" }
dims = { N = 6 }""")  # fmt: skip
        out = tmp_path / "y.npy"
        args = ("--input", "gelu.x=arange", "--input", "src=10", "--save", f"out={out}", "--json", *DEVICE)
        done = teeny("run", "head", "-m", path, *args)
        assert done.code == 0, done.err
        np.testing.assert_allclose(np.load(out), 2 * gelu(np.arange(6.0)) + 10, rtol=1e-5)
        assert memory.uploaded == ["x", "gelu.out", "accumulate.dst", "src", "out"]

    def test_flat_and_back(self, teeny: Teeny, tmp_path: Path) -> None:
        path = write(tmp_path, 'ops = ["softmax", "gelu", "sum"]\ndims = { ROWS = 4, COLS = 5 }')
        done = teeny("run", "head", "-m", path, "--json", *DEVICE)
        assert done.code == 0, done.err
        assert [one["case"] for one in done.json["ops"]][1:] == [{"N": 20}, {"ROWS": 4, "COLS": 5}]

    def test_check_looks_at_it(self, teeny: Teeny, tmp_path: Path) -> None:
        path = write(tmp_path, 'ops = ["linear", "softmax", "sum"]')
        done = teeny("check", "head", "-m", path, "--json")
        assert done.code == 0
        assert [row["op"] for row in done.json["ops"]] == ["pipeline.head"]
        done = teeny("check", "-m", path, "--dim", "N=3", "--json")
        assert done.code == 0, done.err
        assert "pipeline.head" in [row["op"] for row in done.json["ops"]]
        assert teeny("check", "head", "-m", path, "--dim", "linear.N=3").code == 0
        done = teeny("check", "head", "-m", path, "--dim", "softmax.COLS=3", "--json")
        assert ids(done) == ["wire-shape"]
        assert teeny("check", "-m", path, "--dim", "softmax.COLS=3").code == 2

    def test_the_rules_hold_at_its_dims(self, teeny: Teeny, tmp_path: Path) -> None:
        path = write(tmp_path, 'ops = ["gelu", "add"]', add={**OPS["add"], "grid": ["cdiv(N - 3, BLOCK)"]})
        assert teeny("check", "head", "-m", path).code == 0
        done = teeny("check", "head", "-m", path, "--dim", "N=3", "--json")
        assert (done.code, ids(done)) == (1, ["grid-zero"])


MISFITS = [
    ('ops = ["softmax", "sum"]\ndims = { "sum.COLS" = 7 }', "wire-shape", "'sum.x'", "'softmax.out'"),
    ('ops = ["linear", "gelu"]', "wire-row-stride", "'gelu.x'", "'linear.y'"),
    ('ops = ["softmax", "half"]', "wire-dtype", "'half.x'", "'softmax.out'"),
]


@pytest.mark.parametrize(("pipeline", "id", "to", "start"), MISFITS)
def test_what_does_not_fit_is_named_on_both_sides(
    teeny: Teeny, tmp_path: Path, pipeline: str, id: str, to: str, start: str
) -> None:
    path = write(tmp_path, pipeline, half=SAMPLES["rms_norm_f16_triton"])
    done = teeny("check", "head", "-m", path, "--json")
    assert (done.code, ids(done)) == (1, [id])
    (finding,) = done.json["ops"][0]["findings"]
    assert to in finding["message"]
    assert start in finding["message"]
    assert "pipeline.head.ops" in finding["where"]
    # Nothing runs in spite of it.
    ran = teeny("run", "head", "-m", path, "--no-check", "--json", *DEVICE)
    assert (ran.code, ran.json["error"]["id"], ran.json["ops"]) == (1, id, [])


def test_tight_rows_of_a_stride_fit_any_op(teeny: Teeny, tmp_path: Path) -> None:
    done = teeny("run", "linear", "gelu", "-m", write(tmp_path), "--dim", "linear.N=24", "--json", *DEVICE)
    assert done.code == 0, done.err


def test_rows_of_another_length_do_not_fit(teeny: Teeny, tmp_path: Path) -> None:
    path = write(tmp_path, 'ops = ["twice", "sum"]', twice=twice(row_elems="R * C", row_stride="R * C + 4"))
    done = teeny("check", "head", "-m", path, "--json", "--ignore", "access")  # one row of all, for a kernel of three
    assert (done.code, sorted(ids(done))) == (1, ["stride-mismatch", "wire-row-stride"])


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('wire = { "add.x" = "gleu.out" }', "no op 'gleu'"),
        ('wire = { "add.z" = "gelu.out" }', "'add' has no input or param 'z'"),
        ('wire = { "add.x" = "gelu.x" }', "'gelu' has no output 'x'"),
        ('wire = { "gelu.x" = "add.out" }', "add does not run before gelu"),
        ('wire = { "x" = "gelu.out" }', "'x' is not OP.BUFFER"),
    ],
)
def test_wires_that_lead_nowhere(teeny: Teeny, tmp_path: Path, keys: str, words: str) -> None:
    path = write(tmp_path, f'ops = ["gelu", "add"]\n{keys}')
    done = teeny("check", "head", "-m", path, "--json")
    assert (done.code, done.json["ops"][0]["error"]["id"]) == (2, "bad-wire")
    assert words in done.json["ops"][0]["error"]["message"]
    assert teeny("run", "head", "-m", path, *DEVICE).code == 2


def test_names_that_are_not_there(teeny: Teeny, tmp_path: Path) -> None:
    path = write(tmp_path, 'ops = ["gelu", "ad"]')
    error = teeny("check", "head", "-m", path, "--json").json["ops"][0]["error"]
    assert (error["id"], error["hint"]) == ("unknown-op", "did you mean 'add'?")
    assert error["where"].endswith("pipeline.head.ops[1]")
    done = teeny("run", "gelu", "head", "-m", path, *DEVICE)
    assert (done.code, "'head' is a pipeline: name it alone" in done.err) == (2, True)
    done = teeny("run", "gelu", "add", "-m", path, "--dim", "add.M=3", *DEVICE)
    assert (done.code, "unknown-dim" in done.err) == (2, True)
    done = teeny("run", "gelu", "add", "-m", path, "--dim", "N=0", "--json", *DEVICE)
    assert (done.json["error"]["id"], done.json["error"]["where"]) == ("bad-dim", "--dim N")


def test_a_row_of_the_command_line_is_named(teeny: Teeny, tmp_path: Path) -> None:
    done = teeny("run", "linear", "gelu", "-m", write(tmp_path), "--json", *DEVICE)
    error = done.json["error"]
    assert (done.code, error["id"], error["where"]) == (1, "wire-row-stride", "run linear gelu")


def test_a_tensor_map_of_another_shape_is_no_error_of_the_map(teeny: Teeny, tmp_path: Path) -> None:
    ops = {name: SAMPLES[name] for name in ("conv_bn_silu_triton", "scale_tma_cuda")}
    path = write(tmp_path, f"ops = {list(ops)}", **ops)
    assert ids(teeny("check", "head", "-m", path, "--json")) == ["wire-shape"]


def test_a_dim_that_was_read_off_and_is_wrong_says_so(teeny: Teeny, tmp_path: Path) -> None:
    path = write(tmp_path, 'ops = ["softmax", "sum"]', sum={**OPS["sum"], "dims": {"COLS": {"multiple_of": 16}}})
    done = teeny("check", "head", "-m", path, "--dim", "softmax.COLS=10", "--json")
    error = done.json["ops"][0]["error"]
    assert (done.code, error["id"]) == (2, "bad-dim")
    assert error["note"].startswith("read off what 'sum' is given: ROWS = ")


@pytest.mark.devices("cpu")
def test_an_output_in_the_middle_that_is_not_covered_is_shown(teeny: Teeny, tmp_path: Path) -> None:
    add = {key: value for key, value in OPS["add"].items() if key != "reference"}
    path = write(tmp_path, add={**add, "grid": ["cdiv(N, BLOCK) - 1"]})
    done = teeny("run", "add", "gelu", "-m", path, "--dim", "N=300", *DEVICE)
    assert (done.code, "output-not-covered" in done.err) == (1, True)
    assert "44 elements with the bytes 0xFF" in done.out


def test_the_gallery_has_one(teeny: Teeny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert teeny("check", "head").code == 0
    done = teeny("run", "head", "--json", *DEVICE)
    assert done.code == 0, done.err
    assert [one["op"] for one in done.json["ops"]] == [
        "conv_bn_silu_cuda", "gelu_triton", "linear_cuda", "softmax_cuda", "linear_no_bias_cuda",
    ]  # fmt: skip
    assert all(one["ok"] for one in done.json["ops"])


def test_a_pipeline_of_one_op_and_one_of_pipelines(teeny: Teeny, tmp_path: Path) -> None:
    path = write(tmp_path, 'ops = ["gelu"]\n[pipeline.nested]\nops = ["gelu", "head"]')
    done = teeny("run", "head", "-m", path, "--json", *DEVICE)
    assert (done.code, [one["op"] for one in done.json["ops"]]) == (0, ["gelu"])
    done = teeny("run", "nested", "-m", path, *DEVICE)
    assert (done.code, "'head' is a pipeline: write its ops" in done.err) == (2, True)


def test_a_pipeline_called_like_an_op(teeny: Teeny, tmp_path: Path) -> None:
    path = manifest(tmp_path, **OPS)
    path.write_text(path.read_text("utf-8") + '[pipeline.gelu]\nops = ["gelu", "gelu"]\n', "utf-8")
    done = teeny("run", "gelu", "-m", path, *DEVICE)
    assert (done.code, "name-twice" in done.err) == (2, True)
    assert teeny("check", "-m", path).code == 2


def test_scalars_of_one_of_the_ops(teeny: Teeny, tmp_path: Path) -> None:
    path = write(tmp_path, axpy=SAMPLES["axpy_bf16_cuda"])
    done = teeny("run", "axpy", "axpy", "-m", path, "--set", "alpha=2", "--json", *DEVICE)
    assert done.code == 0, done.err
    values = [arg["value"] for launch in done.json["launches"] for arg in launch["args"] if "alpha" in arg["name"]]
    assert values == [2, 2]
    assert teeny("run", "gelu", "axpy", "-m", path, "--set", "beta=2", *DEVICE).code == 2


@pytest.mark.devices("cpu")
def test_two_wires_from_one_output(teeny: Teeny, tmp_path: Path, memory: Memory) -> None:
    """Both operands of a sum in place are one buffer, and the one that is written gets a copy."""
    path = write(tmp_path, """ops = ["gelu", "accumulate"]
wire = { "accumulate.dst" = "gelu.out", "accumulate.src" = "gelu.out" }
dims = { N = 6 }""")  # fmt: skip
    done = teeny("run", "head", "-m", path, "--json", *DEVICE)
    assert done.code == 0, done.err
    assert memory.uploaded == ["x", "gelu.out", "dst"]


def test_each_row_stride_is_to_be_told(teeny: Teeny, tmp_path: Path) -> None:
    both = {**OPS["softmax"], "inputs": [{"name": name, "shape": ["ROWS", "COLS"]} for name in "xz"]}
    wires = 'wire = { "both.x" = "linear.y", "both.z" = "linear.y" }'
    path = write(tmp_path, f'ops = ["linear", "both"]\n{wires}', both=both)
    done = teeny("check", "head", "-m", path, "--json")
    assert ids(done) == ["wire-row-stride", "buffer-unused"]
    assert "'both.z' expects tight rows" in done.json["ops"][0]["findings"][0]["message"]
