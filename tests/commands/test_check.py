from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from teenycli.dtypes import DTYPES
from tests.commands.teeny import ROOT, Teeny, manifest, samples

pytestmark = pytest.mark.unit

SAMPLES = samples()
#: Samples with one output, dims for arguments, and a block that the PTX states.
PLAIN = [f"{name}_{by}" for name in ("vector_add", "softmax", "detect_decode") for by in ("cuda", "triton")]
Op = dict[str, Any]


def ids(teeny: Teeny, folder: Path, op: Op) -> tuple[int, set[str]]:
    """Exit code and ids of what check says of an op."""
    done = teeny("check", "--json", "-m", manifest(folder, it=op))
    rows = done.json["ops"]
    return done.code, {f["id"] for row in rows for f in (*row["findings"], *([row["error"]] if row["error"] else []))}


def scalar_kinds(size: int, floats: bool) -> Iterator[str]:
    for name, dtype in DTYPES.items():
        if name not in ("ptr", "e4m3", "e5m2") and dtype.size == size and dtype.is_float == floats:
            yield name


def test_every_sample_is_fine_without_a_device(teeny: Teeny) -> None:
    done = teeny("check", "-m", ROOT / "ops.toml")
    assert done.code == 0
    for name in SAMPLES:
        assert name in done.out


@pytest.mark.parametrize("name", PLAIN)
class TestEveryMistake:
    """Each single change to each plain sample is named, with exit code 1."""

    def test_an_argument_dropped(self, teeny: Teeny, tmp_path: Path, name: str) -> None:
        args = SAMPLES[name]["args"]
        for k in range(len(args)):
            found = ids(teeny, tmp_path, {**SAMPLES[name], "args": args[:k] + args[k + 1 :]})
            assert found == (1, {"argument-count"}), args[k]

    def test_an_argument_added(self, teeny: Teeny, tmp_path: Path, name: str) -> None:
        args = SAMPLES[name]["args"]
        for extra in ("ptr out", "i32 1", "ptr null"):
            for k in range(len(args) + 1):
                found = ids(teeny, tmp_path, {**SAMPLES[name], "args": [*args[:k], extra, *args[k:]]})
                assert found == (1, {"argument-count"})

    def test_an_argument_of_another_width(self, teeny: Teeny, tmp_path: Path, name: str) -> None:
        for k, arg in enumerate(SAMPLES[name]["args"]):
            kind, value = arg.split(" ", 1)
            for size in {1, 2, 4, 8} - {8 if kind == "ptr" else DTYPES[kind].size}:
                for other in (*scalar_kinds(size, floats=False), *scalar_kinds(size, floats=True)):
                    given = "1" if kind == "ptr" or size < 4 else value
                    assert ids(teeny, tmp_path, self.retyped(name, k, f"{other} {given}")) == (1, {"argument-width"})

    def test_a_float_for_an_integer(self, teeny: Teeny, tmp_path: Path, name: str) -> None:
        for k, arg in enumerate(SAMPLES[name]["args"]):
            kind, value = arg.split(" ", 1)
            if kind == "i32":
                assert ids(teeny, tmp_path, self.retyped(name, k, f"f32 {value}")) == (1, {"argument-kind"})

    def test_a_scalar_for_a_pointer(self, teeny: Teeny, tmp_path: Path, name: str) -> None:
        for k, arg in enumerate(SAMPLES[name]["args"]):
            if arg.startswith("ptr"):
                for kind in ("i64", "u64", "f64"):
                    assert ids(teeny, tmp_path, self.retyped(name, k, f"{kind} 1")) == (1, {"argument-kind"})

    def test_a_pointer_for_a_scalar(self, teeny: Teeny, tmp_path: Path, name: str) -> None:
        for k, arg in enumerate(SAMPLES[name]["args"]):
            if not arg.startswith("ptr"):
                assert ids(teeny, tmp_path, self.retyped(name, k, "ptr out")) == (1, {"argument-width"})

    def test_an_output_swapped_with_an_input(self, teeny: Teeny, tmp_path: Path, name: str) -> None:
        args = SAMPLES[name]["args"]
        for k, arg in enumerate(args):
            if arg.startswith("ptr") and arg != "ptr out":
                swapped = [{arg: "ptr out", "ptr out": arg}.get(other, other) for other in args]
                found = ids(teeny, tmp_path, {**SAMPLES[name], "args": swapped})
                assert found == (1, {"output-not-written", "input-written"}), args[k]

    def test_another_block(self, teeny: Teeny, tmp_path: Path, name: str) -> None:
        if name.endswith("triton"):
            for block in ([64], [256], [128, 2], [1024]):
                assert ids(teeny, tmp_path, {**SAMPLES[name], "block": block}) == (1, {"block-mismatch"})
        else:
            most = SAMPLES[name]["consts"][next(iter(SAMPLES[name]["consts"]))]
            for block in ([most + 1], [most, 2], [1024]):
                code, found = ids(teeny, tmp_path, {**SAMPLES[name], "block": block})
                assert (code, found - {"axis-unread"}) == (1, {"block-too-large"})
                assert ("axis-unread" in found) == (len(block) == 2)

    def retyped(self, name: str, index: int, arg: str) -> Op:
        args = list(SAMPLES[name]["args"])
        args[index] = arg
        return {**SAMPLES[name], "args": args}


class TestGeometry:
    OP = SAMPLES["vector_add_cuda"]

    @pytest.mark.parametrize(
        ("key", "value", "id"),
        [
            ("grid", [0], "grid-zero"), ("grid", [1, -1], "grid-zero"), ("grid", [1, 65536], "grid-limit"),
            ("grid", [2**31], "grid-limit"), ("block", [0], "block-zero"), ("block", [1, 1, 65], "block-limit"),
            ("shared", 200_000, "shared-limit"), ("cluster", [3], "cluster-limit"),
        ],
    )  # fmt: skip
    def test_limits(self, teeny: Teeny, tmp_path: Path, key: str, value: object, id: str) -> None:
        code, found = ids(teeny, tmp_path, {**self.OP, key: value})
        assert code == 1
        assert id in found

    def test_shared_memory_that_nobody_knows_is_an_error(self, teeny: Teeny, tmp_path: Path) -> None:
        (tmp_path / "k.ptx").write_bytes((ROOT / "ptx/triton/softmax.ptx").read_bytes())  # without its .json
        code, found = ids(teeny, tmp_path, {**SAMPLES["softmax_triton"], "ptx": "k.ptx"})
        assert (code, found) == (2, {"shared-unknown"})
        assert ids(teeny, tmp_path, {**SAMPLES["softmax_triton"], "ptx": "k.ptx", "shared": 16}) == (0, set())


class TestFloatParameters:
    """What the loads of the body say refines the parameter list."""

    PTX = (
        ".version 8.7\n.target sm_80\n.address_size 64\n.entry k(.param .u32 a, .param .u32 b, .param .f32 c) {{\n"
        ".reg .b32 %r<4>; .reg .f32 %f<4>; ld.param.f32 %f3,[c]; {0}\nret; }}\n"
    )

    def found(self, teeny: Teeny, folder: Path, body: str, *args: str) -> tuple[int, set[str]]:
        (folder / "k.ptx").write_text(self.PTX.format(body))
        return ids(teeny, folder, {"ptx": "k.ptx", "args": list(args), "grid": [1], "block": [32]})

    def test_a_u32_that_is_loaded_as_f32_takes_a_float(self, teeny: Teeny, tmp_path: Path) -> None:
        body = "ld.param.f32 %f1,[a]; ld.param.u32 %r1,[b];"
        assert self.found(teeny, tmp_path, body, "f32 0.5", "i32 1", "f32 1") == (0, set())
        assert self.found(teeny, tmp_path, body, "i32 1", "i32 1", "f32 1") == (1, {"argument-kind"})
        assert self.found(teeny, tmp_path, body, "f32 1", "f32 1", "f32 1") == (1, {"argument-kind"})
        assert self.found(teeny, tmp_path, body, "f32 1", "i32 1", "i32 1") == (1, {"argument-kind"})

    def test_so_does_one_that_is_computed_with_as_a_float(self, teeny: Teeny, tmp_path: Path) -> None:
        body = "ld.param.b32 %r1,[a]; add.f32 %r2,%r1,%r1; ld.param.b32 %r3,[b]; add.s32 %r3,%r3,1;"
        assert self.found(teeny, tmp_path, body, "f32 0.5", "i32 1", "f32 1") == (0, set())
        assert self.found(teeny, tmp_path, body, "u32 1", "f32 1", "f32 1") == (1, {"argument-kind"})


class TestInitialData:
    OP = SAMPLES["detect_decode_cuda"]

    def with_strides(self, folder: Path, count: int) -> Op:
        (folder / "strides.bin").write_bytes(bytes(count))
        params = [{**param} for param in self.OP["params"]]
        params[2]["init"] = "strides.bin"
        return {**self.OP, "params": params, "dims": {"B": 1, "A": 10}, "cases": []}

    @pytest.mark.parametrize(("count", "code"), [(40, 0), (39, 1), (41, 1), (0, 1)])
    def test_byte_count(self, teeny: Teeny, tmp_path: Path, count: int, code: int) -> None:
        assert ids(teeny, tmp_path, self.with_strides(tmp_path, count)) == (code, {"byte-count"} if code else set())


class TestNames:
    def test_ops(self, teeny: Teeny) -> None:
        done = teeny("check", "-m", ROOT / "ops.toml", "softmax_trito")
        assert done.code == 2
        assert "did you mean 'softmax_triton'?" in done.out + done.err

    def test_entries(self, teeny: Teeny, tmp_path: Path) -> None:
        code, found = ids(teeny, tmp_path, {**SAMPLES["vector_add_cuda"], "entry": "vectoradd"})
        assert (code, found) == (2, {"unknown-entry"})

    def test_dims(self, teeny: Teeny) -> None:
        done = teeny("check", "-m", ROOT / "ops.toml", "vector_add_cuda", "--dim", "M=3")
        assert (done.code, "'M'" in done.err) == (2, True)

    def test_ignored_findings(self, teeny: Teeny, tmp_path: Path) -> None:
        op = {
            **SAMPLES["vector_add_cuda"],
            "block": [512],
            "ignore": {"block-too-large": "to see", "output-overlap": "so we see"},
        }
        assert ids(teeny, tmp_path, op) == (0, set())


def test_places_are_of_the_manifest(teeny: Teeny, tmp_path: Path) -> None:
    op = {**SAMPLES["vector_add_cuda"], "args": ["ptr x", "ptr y", "ptr out", "i64 N"]}
    (row, *_) = teeny("check", "--json", "-m", manifest(tmp_path, it=op)).json["ops"]
    (finding,) = row["findings"]
    assert finding["where"].endswith("ops.toml:5: op.it.args[3]") or "op.it.args[3]" in finding["where"]
    assert "i64, 8 bytes" in finding["message"]
    assert "takes 4 bytes" in finding["message"]
    assert finding["hint"] == "kinds that fit: i32, u32"


def test_no_manifest(teeny: Teeny) -> None:
    done = teeny("check")
    assert (done.code, "no-manifest" in done.err) == (2, True)
