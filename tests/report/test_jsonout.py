from __future__ import annotations

import json
import math
from typing import Any

import pytest

from teenycli.errors import Finding
from teenycli.report.jsonout import check_document, entries_document, finite, run_document
from teenycli.report.rows import CheckRow, FileRow
from tests.report.samples import file_row, report

pytestmark = pytest.mark.unit


def through_json(document: Any) -> Any:
    return json.loads(json.dumps(document, allow_nan=False))


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.5, 1.5), (math.nan, "nan"), (math.inf, "inf"), (-math.inf, "-inf"), (2**64, 2**64), (None, None), (0, 0)],
)
def test_finite(value: float | None, shown: object) -> None:
    assert finite(value) == shown


class TestEntries:
    def test_keys(self) -> None:
        (file,) = through_json(entries_document([file_row()]))
        assert list(file) == ["file", "version", "target", "address_size", "sm", "error", "entries"]
        assert (file["version"], file["target"], file["address_size"], file["sm"]) == ("8.7", "sm_90a", 64, 90)
        entry = file["entries"][0]
        assert list(entry) == [
            "name", "demangled", "line", "params", "reqntid", "maxntid", "minnctapersm", "maxnreg", "cluster",
            "shared_static", "shared_dynamic", "metadata",
        ]  # fmt: skip
        assert entry["reqntid"] == [128, 1, 1]
        assert entry["maxntid"] is None
        assert entry["cluster"] == {
            "explicit": False, "required": [2, 1, 1], "max_rank": None, "blocks_are_clusters": False,
        }  # fmt: skip
        assert (entry["shared_static"], entry["shared_dynamic"]) == (512, True)
        assert entry["metadata"] == {"num_warps": 4, "shared": 2048}
        assert (entry["minnctapersm"], entry["maxnreg"], entry["demangled"]) == (2, 64, "add(float*, int)")

    def test_params(self) -> None:
        (file,) = through_json(entries_document([file_row()]))
        params = file["entries"][0]["params"]
        assert params[0] == {
            "index": 0, "name": "x", "type": "u64", "size": 8, "align": 8, "offset": 0,
            "pointer": {"space": "global", "align": 4}, "hidden": False, "usage": None,
        }  # fmt: skip
        assert [param["offset"] for param in params] == [0, 8, 48, 176]
        assert [param["hidden"] for param in params] == [False, False, False, True]
        assert params[2]["type"] == "b8[128]"
        assert params[2]["pointer"] is None

    def test_bodies(self) -> None:
        (file,) = through_json(entries_document([file_row(bodies=True)]))
        entry = file["entries"][0]
        access = {"kind": "store", "space": "global", "type": "b32", "count": 1, "bytes": 4, "opcode": ""}
        use = {
            "pointer": True, "address": True, "as_float": False, "as_integer": False, "escaped": False,
            "loads": [{"offset": 0, "size": 8, "type": "u64"}], "accesses": [access],
            "types": [], "elements": ["b32"], "bound": False, "guard": False, "loop": False, "divisor": False,
            "factor": False, "stride": False, "stored": False, "base": True, "handle": False,
        }  # fmt: skip
        assert entry["params"][0]["usage"] == {
            "unused": False, **use, "tensormap": False, "beyond": False, "narrow": False,
            "parts": [{"offset": 0, "size": 8, **use}],
        }  # fmt: skip
        assert entry["params"][1]["usage"]["stored"] is True
        assert entry["params"][3]["usage"]["unused"] is True
        assert entry["instructions"] == {"1": 5}
        assert entry["registers"] == {"b64": 3, "b32": 2}

    def test_a_file_that_could_not_be_read(self) -> None:
        (file,) = through_json(entries_document([FileRow("x.ptx", error=Finding("syntax", "no"))]))
        assert file == {
            "file": "x.ptx", "version": None, "target": None, "address_size": None, "sm": None, "entries": [],
            "error": {"id": "syntax", "severity": "error", "message": "no", "where": None, "hint": None, "note": None},
        }  # fmt: skip


def test_check() -> None:
    rows = [
        CheckRow("a", {"N": 1, "eps": math.inf}, (Finding("x", "y", hint="z"),), ignored=((Finding("e", "f"), "why"),)),
        CheckRow("b", {}, (), Finding("e", "f")),
    ]
    out = through_json(check_document(rows))
    finding = {"id": "x", "severity": "error", "message": "y", "where": None, "hint": "z", "note": None}
    error = {"id": "e", "severity": "error", "message": "f", "where": None, "hint": None, "note": None}
    assert out == {
        "error": None,
        "ops": [
            {
                "op": "a",
                "case": {"N": 1, "eps": "inf"},
                "error": None,
                "findings": [finding],
                "ignored": [{**error, "reason": "why"}],
            },
            {"op": "b", "case": {}, "error": error, "findings": [], "ignored": []},
        ],
    }


class TestRun:
    def test_the_whole(self) -> None:
        out = through_json(run_document(report(2)))
        assert list(out) == [
            "device", "description", "error", "findings", "compile", "ops", "launches", "outputs", "compare",
            "gradcheck",
        ]  # fmt: skip
        assert (out["findings"], out["gradcheck"]) == ([], [])
        assert (out["device"], out["compile"]) == ("cpu", {"ms": 12.5, "cached": False})
        assert [len(out[key]) for key in ("launches", "outputs", "compare")] == [2, 2, 2]

    def test_launches(self) -> None:
        launch = through_json(run_document(report(2)))["launches"][1]
        args = launch.pop("args")
        assert launch == {
            "op": "add", "case": {"B": 2, "N": 4}, "entry": "add_kernel", "index": 1, "grid": [1001, 1, 1],
            "block": [96, 2, 1], "cluster": [2, 1, 1], "shared": 2048, "shared_static": 512, "cooperative": False,
            "bytes_read": 96, "bytes_written": 96, "ms": 0.5,
        }  # fmt: skip
        assert args[0] == {
            "index": 0, "name": "x", "kind": "ptr", "size": 8, "offset": 0, "hidden": False,
            "value": {"buffer": "x", "offset": 0},
        }  # fmt: skip
        assert [arg["value"] for arg in args[3:]] == [
            {"buffer": "y", "offset": 4},
            None,
            [
                {"kind": "ptr", "offset": 0, "value": {"buffer": "x", "offset": 0}},
                {"kind": "i32", "offset": 8, "value": 1024},
                {"kind": "f32", "offset": 12, "value": 0.5},
            ],
            8,
            1,
            "nan",
            "00ff1001",
            {"buffer": "scratch", "offset": 0},
        ]
        assert args[9]["offset"] is None
        assert args[10]["hidden"] is True

    def test_outputs(self) -> None:
        output = through_json(run_document(report()))["outputs"][0]
        assert len(output.pop("sha256")) == 64
        assert output == {
            "op": "add", "case": {"B": 2, "N": 4}, "name": "y", "dtype": "f32", "shape": [2, 4], "min": 0.0, "max": 9.0,
            "mean": 29 / 7, "nan": 1, "inf": 0, "unwritten": 0,
        }  # fmt: skip

    def test_comparisons(self) -> None:
        bad, good = through_json(run_document(report()))["compare"]
        assert bad == {
            "op": "add", "case": {"B": 2, "N": 4}, "name": "y", "ok": False, "count": 8, "mismatches": 2,
            "max_abs": "nan", "max_rel": "nan", "max_ulp": 3 * 2**23 + 2**20, "first": [0, 1],
            "first_result": 9.0, "first_reference": 1.0,
            "worst": [1, 3], "unwritten": 0, "zeros_pass": False, "rtol": 1e-5, "atol": 1e-6,
        }  # fmt: skip
        assert (good["ok"], good["first"], good["worst"], good["max_abs"]) == (True, None, None, 0)
