"""Tensor maps: from the manifest to what check and run say of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.commands.teeny import Teeny, manifest

pytestmark = pytest.mark.device

#: A kernel that loads a box of d to shared memory, and one that only takes the address of d.
PTX = """.version 8.6
.target sm_90
.address_size 64
.entry load(.param .align 64 .b8 d[128], .param .u64 y) {
.reg .b64 %rd<3>; .reg .b32 %r<3>;
.shared .align 128 .b8 tile[8192];
.shared .align 8 .b64 bar;
mov.b64 %rd1, d;
cvta.param.u64 %rd2, %rd1;
mov.u32 %r1, tile;
mov.u32 %r2, bar;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd2, {%r1, %r2}], [%r2];
ret; }
.entry idle(.param .align 64 .b8 d[128]) { .reg .b64 %rd1; mov.b64 %rd1, d; ret; }
.entry loose(.param .align 8 .b8 d[128]) { .reg .b64 %rd1; mov.b64 %rd1, d; ret; }
"""
Op = dict[str, Any]


@pytest.fixture(autouse=True)
def _ptx(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(PTX)


def op(entry: str = "idle", shape: list[Any] | None = None, dtype: str = "f16", **tensormap: Any) -> Op:
    return {
        "ptx": "k.ptx", "entry": entry, "block": [32], "grid": [1], "dtype": dtype, "args": ["tensormap d"],
        "inputs": [{"name": "x", "shape": shape or ["M", "N"]}], "dims": {"M": 64, "N": 64},
        "tensormaps": {"d": {"of": "x", "box": [64, 64], **tensormap}},
    }  # fmt: skip


def findings(teeny: Teeny, folder: Path, op: Op) -> list[dict[str, Any]]:
    # The kernel that is declared for them reads none.
    (row,) = teeny("check", "--ignore", "unused-parameter", "--json", "-m", manifest(folder, k=op)).json["ops"]
    found: list[dict[str, Any]] = [*row["findings"], *([row["error"]] if row["error"] else [])]
    return found


@pytest.mark.parametrize(
    "tensormap",
    [{}, {"swizzle": "128B"}, {"box": [256, 8], "swizzle": "32B"}, {"element_strides": [1, 8]}, {"fill": "nan"}],
)
def test_maps_that_a_copy_can_use(teeny: Teeny, tmp_path: Path, tensormap: dict[str, Any]) -> None:
    assert findings(teeny, tmp_path, op(**tensormap)) == []


def test_a_map_that_reaches_beyond_its_buffer(teeny: Teeny, tmp_path: Path) -> None:
    (finding,) = findings(teeny, tmp_path, op(of="x + 8", strides=[64], box=[1, 8]))
    assert finding["id"] == "tensormap-bounds"
    assert "reaches from byte 16 to 8,208 of 'x', which has 8,192" in finding["message"]


@pytest.mark.parametrize(
    ("change", "id", "key"),
    [
        ({"box": [64, 257]}, "tensormap-box", "box"), ({"box": [256, 256], "dtype": "f64"}, "tensormap-box", "box"),
        ({"shape": [2, 2**32 + 8], "box": [1, 64], "dtype": "u8"}, "tensormap-rank", "of"),
 ({"box": [0, 64]}, "tensormap-box", "box"),
        ({"box": [64, 4]}, "tensormap-box", "box"), ({"swizzle": "64B"}, "tensormap-swizzle", "swizzle"),
        ({"swizzle": "64B", "interleave": "32B", "shape": [4, 64, 64], "box": [1, 64, 64]}, "tensormap-swizzle",
         "swizzle"),
        ({"element_strides": [1, 9]}, "tensormap-element-stride", "element_strides"),
        ({"element_strides": [0, 1]}, "tensormap-element-stride", "element_strides"),
        ({"shape": [2] * 6, "box": [2] * 5 + [8]}, "tensormap-rank", "of"),
        ({"interleave": "16B"}, "tensormap-rank", "of"),
        ({"dtype": "i16", "fill": "nan"}, "tensormap-fill", "fill"),
        ({"shape": [64, 60]}, "tensormap-stride", "strides"), ({"strides": [68]}, "tensormap-stride", "strides"),
    ],
)  # fmt: skip
def test_maps_that_no_copy_can_use(teeny: Teeny, tmp_path: Path, change: dict[str, Any], id: str, key: str) -> None:
    found = {f["id"]: f for f in findings(teeny, tmp_path, op(**change))}
    assert id in found
    assert found[id]["where"].endswith(f"op.k.tensormaps.d.{key}")
    assert found[id]["severity"] == "error"


def test_an_address_that_is_not_aligned(teeny: Teeny, tmp_path: Path) -> None:
    ids = [f["id"] for f in findings(teeny, tmp_path, op(of="x + 4", box=[1, 8]))]
    assert ids == ["tensormap-address", "tensormap-bounds"]


def test_a_row_stride_that_is_no_multiple_of_16_bytes(teeny: Teeny, tmp_path: Path) -> None:
    made = op("load", of="y", box=[8, 8])
    made["args"].append("ptr y")
    for stride, ids in ((60, ["tensormap-stride"]), (64, [])):
        made["output"] = {"name": "y", "shape": ["M", 57], "row_stride": stride}
        found = [f for f in findings(teeny, tmp_path, made) if f["id"].startswith("tensormap-")]
        assert [f["id"] for f in found] == ids
    made["output"]["row_stride"] = 60
    finding = findings(teeny, tmp_path, made)[0]
    assert "the stride of dimension 0 is 120 bytes, which is no multiple of 16" in finding["message"]


def test_a_parameter_aligned_to_less(teeny: Teeny, tmp_path: Path) -> None:
    assert [f["id"] for f in findings(teeny, tmp_path, op("loose"))] == ["tensormap-align"]


@pytest.mark.parametrize(
    ("change", "id", "key"),
    [
        ({"box": [64]}, "bad-value", "tensormaps.d.box"), ({"strides": [1, 2]}, "bad-value", "tensormaps.d.strides"),
        ({"of": "M"}, "bad-argument", "tensormaps.d.of"), ({"of": "null"}, "bad-argument", "tensormaps.d.of"),
        ({"swizzle": "256B"}, "bad-value", "tensormaps.d.swizzle"),
        ({"fill": "ones"}, "bad-value", "tensormaps.d.fill"),
        ({"boxes": [1]}, "unknown-key", "tensormaps.d.boxes"),
    ],
)  # fmt: skip
def test_maps_that_say_nothing(teeny: Teeny, tmp_path: Path, change: dict[str, Any], id: str, key: str) -> None:
    (error,) = findings(teeny, tmp_path, op(**change))
    assert error["id"] == id
    assert error["where"].endswith(f"op.k.{key}")


def test_an_argument_of_a_map_that_is_not_there(teeny: Teeny, tmp_path: Path) -> None:
    (error,) = findings(teeny, tmp_path, {**op(), "args": ["tensormap e"]})
    assert (error["id"], error["where"].endswith("op.k.args[0]")) == ("bad-argument", True)


def test_the_cpu_device_refuses_a_copy_that_it_lacks(teeny: Teeny, tmp_path: Path) -> None:
    gathering = PTX.replace(".tile.mbarrier", ".tile::gather4.mbarrier")
    (tmp_path / "k.ptx").write_text(gathering.replace("{%r1, %r2}", "{%r1, %r2, %r2, %r2, %r2}"))
    made = op("load")
    made["args"].append("ptr y")
    made["output"] = {"name": "y", "shape": [4]}
    done = teeny("run", "k", "-m", manifest(tmp_path, k=made), "--no-check", "--device", "cpu")
    assert done.code == 4
    assert "unsupported-instruction" in done.err
    assert "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4" in done.err


def test_the_table_and_the_document_describe_it(teeny: Teeny, tmp_path: Path) -> None:
    path = manifest(tmp_path, k=op(swizzle="128B"))
    done = teeny("run", "k", "-m", path, "--device", "cpu")
    assert done.code == 0
    assert "-> x as f16[64, 64], 128 bytes apart, boxes of [64, 64], swizzle 128B\n" in done.out
    (launch,) = teeny("run", "k", "-m", path, "--device", "cpu", "--json").json["launches"]
    assert launch["args"][0]["value"] == {
        "buffer": "x", "offset": 0, "dtype": "f16", "shape": [64, 64], "strides": [128], "box": [64, 64],
        "element_strides": [1, 1], "swizzle": "128B", "interleave": "none", "fill": "zeros",
    }  # fmt: skip
