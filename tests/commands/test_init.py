"""``teeny init`` on every PTX file of the repository, and what check says before and after its gaps are filled."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from teenycli.manifest import load_manifest
from teenycli.manifest.gaps import OPEN
from tests.commands.teeny import MADE_UP, ROOT, Teeny, manifest

pytestmark = pytest.mark.unit

CORPUS = ROOT / "tests" / "corpus"
FILES = sorted(path.relative_to(ROOT).as_posix() for top in (ROOT / "ptx", CORPUS) for path in top.rglob("*.ptx"))
NO_ENTRY = {"tests/corpus/handmade/arrays.ptx", "tests/corpus/numba/distance.ptx"}


def filled(value: Any, key: str = "") -> Any:
    """An op with its gaps filled as a user in a hurry would: one dim N, few CTAs, small blocks, no reference."""
    if isinstance(value, dict):
        table = {k: filled(each, k) for k, each in value.items() if not (k in ("reference", "consts") and each == OPEN)}
        return {**table, "dims": {**table.get("dims", {}), "N": 64}} if key == "op" else table
    if isinstance(value, list):
        return [filled(each, key) for each in value]
    if value == OPEN:
        return {"shape": "N", "grid": 8, "block": 4, "shared": 1024, "dtype": "f32",
                "ptx": "x.ptx"}.get(key, 64)  # fmt: skip
    return value


def valued(arg: str) -> str:
    """An argument with its open values filled: a struct's members are zero and null."""
    return arg.replace(f"ptr {OPEN}", "ptr null").replace(OPEN, "0") if arg.startswith("{") else arg


def sized(op: dict[str, Any], text: str) -> dict[str, Any]:
    """``op`` with as many bytes as the comment behind ``bytes TODO`` says."""
    sizes = [int(size) for size in re.findall(rf'"bytes {OPEN}",.*?, (\d+) bytes', text)]
    args = [f"bytes {'00' * sizes.pop(0)}" if arg == f"bytes {OPEN}" else arg for arg in op["args"]]
    return {**op, "args": [valued(arg) for arg in args]}


def drafted(teeny: Teeny, *args: str | Path) -> tuple[str, dict[str, dict[str, Any]]]:
    done = teeny("init", *args)
    assert (done.code, done.err) == (0, "")
    return done.out, tomllib.loads(done.out)["op"]


@pytest.mark.parametrize("file", FILES)
def test_every_file_of_the_corpus(teeny: Teeny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    """It parses, its gaps are what check lists, each on its line; and filled in, check finds nothing."""
    monkeypatch.chdir(ROOT)
    if file in NO_ENTRY:
        done = teeny("init", file)
        assert (done.code, done.out) == (2, "")
        assert "no-entry" in done.err
        return
    text, ops = drafted(teeny, file)
    (tmp_path / "draft.toml").write_text(text)
    check_gaps(tmp_path / "draft.toml", text)
    for name, op in ops.items():
        table = text.partition(f"[op.{name}]")[2].partition("\n[op.")[0]
        ready = filled(sized(op, table), "op")
        ready["ptx"] = str(ROOT / file)
        for buffer in ready.get("inputs", []):
            buffer.setdefault("shape", ["N"])
        if "tensormaps" in ready:
            ready["inputs"] = [*ready.get("inputs", []), {"name": "tensor", "shape": ["N"]}]
            ready["tensormaps"] = {key: {"of": "tensor", "box": [32]} for key in ready["tensormaps"]}
        done = teeny("check", "--ignore", f"{MADE_UP},buffer-dtype", "-m", manifest(tmp_path, **{name: ready}))
        assert done.code == 0, done.out + done.err


def check_gaps(path: Path, text: str) -> None:
    """Every value with a marker is a gap, placed on its line; what comments say is none."""
    lines = [
        re.sub(r"\{\w+ [^\"]*\}", OPEN, line.partition("  # ")[0]) if OPEN in line else "" for line in text.splitlines()
    ]
    marked = [number for number, line in enumerate(lines, 1) for _ in range(0 if line[:1] == "#" else line.count(OPEN))]
    found = [gap for gaps in load_manifest(path).gaps.values() for gap in gaps]
    assert sorted(gap.where.line for gap in found if gap.where) == marked
    assert {gap.id for gap in found} <= {"gap"}
    assert all(gap.hint for gap in found)


KERNEL = ROOT / "ptx" / "triton" / "softmax.ptx"
#: The head of what Triton 3.9 leaves beside a kernel `softmax(x, out, n_cols, x_stride, out_stride, BLOCK)`.
TTIR = """#loc = loc("softmax.py":25:1)
module {
  tt.func public @softmax(%x: !tt.ptr<bf16> {tt.divisibility = 16 : i32} loc("x"(#loc)), %out: !tt.ptr<f32> \
{tt.divisibility = 16 : i32} loc("out"(#loc)), %n_cols: i32 {tt.divisibility = 16 : i32} loc("n_cols"(#loc)), \
%x_stride: i32 loc("x_stride"(#loc)), %arg4: i32 loc("o"(#loc))) attributes {noinline = false} {
"""


def cache_folder(folder: Path, ttir: str = TTIR) -> Path:
    """A Triton cache folder of the sample softmax."""
    folder.mkdir()
    for ending in (".ptx", ".json"):
        (folder / f"softmax{ending}").write_text(KERNEL.with_suffix(ending).read_text())
    (folder / "softmax.ttir").write_text(ttir)
    return folder


class TestTriton:
    def test_a_cache_folder_gives_names_types_and_promises(self, teeny: Teeny, tmp_path: Path) -> None:
        text, ops = drafted(teeny, cache_folder(tmp_path / "cache"), "-q")
        op = ops["softmax"]
        assert op["ptx"] == "cache"
        assert op["args"] == ["ptr x", "ptr out", "i32 n_cols", "i32 x_stride", "i32 p4"]
        assert op["inputs"] == [{"name": "x", "shape": [OPEN], "dtype": "bf16"}]
        assert op["output"] == {"name": "out", "shape": [OPEN]}
        assert op["dims"] == {"n_cols": {"value": OPEN, "multiple_of": 16}, "x_stride": OPEN, "p4": OPEN}
        assert "num_warps 4" in text
        assert "2 hidden parameters" in text

    def test_an_ir_that_does_not_fit_is_left_aside(self, teeny: Teeny, tmp_path: Path) -> None:
        short = TTIR.replace(", %arg4: i32", "")
        _, ops = drafted(teeny, cache_folder(tmp_path / "cache", short))
        assert ops["softmax"]["args"] == ["ptr p0", "ptr p1", "i32 p2", "i32 p3", "i32 p4"]

    def test_filled_in_it_runs(self, teeny: Teeny, tmp_path: Path) -> None:
        cache_folder(tmp_path / "cache", TTIR.replace("bf16", "f32"))
        path = tmp_path / "ops.toml"
        assert teeny("init", tmp_path / "cache", "-o", path).code == 0
        text = path.read_text().replace('consts = "TODO"', "").replace('grid = ["TODO"]', 'grid = ["ROWS"]')
        text = text.replace('shape = ["TODO"]', 'shape = ["ROWS", "n_cols"]')
        text = text.replace('reference = "TODO"', 'reference = "exp(x) / exp(x).sum(axis=1, keepdims=True)"')
        path.write_text(text.replace('"TODO"', "32") + "ROWS = 3\n")
        done = teeny("run", "softmax", "-m", path, "--device", "cpu")
        assert done.code == 0, done.out + done.err
        assert "compare  ok" in done.out


FOLDERS = [
    "atomics", "attention", "brain_floats", "casts", "gemm", "layer_norm", "log_softmax", "row_sums.triton-3.2",
    "row_sums.triton-3.4", "row_sums.triton-3.6", "tile_product.triton-3.2",
]  # fmt: skip


@pytest.mark.parametrize("name", FOLDERS)
def test_every_cache_folder(teeny: Teeny, tmp_path: Path, name: str) -> None:
    """As Triton leaves it: the kernel's files under its own name, and files that are neither PTX nor notes."""
    notes = json.loads((CORPUS / "triton" / f"{name}.json").read_text())
    folder = tmp_path / "LDCEvJS7LnW_oq"
    folder.mkdir()
    for ending in (".ptx", ".json"):
        text = (CORPUS / "triton" / f"{name}{ending}").read_text()
        (folder / f"{notes['name']}{ending}").write_text(text)
    (folder / f"__grp__{notes['name']}.json").write_text('{"child_paths": {}}')
    (folder / f"{notes['name']}.cubin").write_bytes(b"\x7fELF")
    text, ops = drafted(teeny, folder)
    (op,) = ops.values()
    assert list(ops) == [notes["name"]]
    assert f"num_warps {notes['num_warps']}" in text
    assert op["block"] == "ptx"
    assert "shared" not in op  # the notes say it
    done = teeny("check", "--ignore", f"{MADE_UP},buffer-dtype", "-m", manifest(tmp_path, it=filled(op, "op")))
    assert done.code == 0, done.out + done.err


class TestGaps:
    def test_check_lists_each_with_what_to_write(self, teeny: Teeny, tmp_path: Path) -> None:
        path = tmp_path / "ops.toml"
        assert teeny("init", KERNEL, "--name", "rows", "-o", path).code == 0
        done = teeny("check", "--json", "-m", path)
        (row,) = done.json["ops"]
        assert done.code == 1
        assert [finding["id"] for finding in row["findings"]] == ["gap"] * 8
        places = [finding["where"].split(": op.rows.") for finding in row["findings"]]
        keys = [key for _, key in places]
        assert keys == ["consts", "inputs[0].shape[0]", "output.shape[0]", "grid[0]", "reference", "dims.p2", "dims.p3",
                        "dims.p4"]  # fmt: skip
        assert row["findings"][1]["message"] == "shape of 'p0' is left open: an extent"
        lines = path.read_text().splitlines()
        assert all(OPEN in lines[int(place.rpartition(":")[2]) - 1] for place, _ in places)

    def test_one_filled_is_one_less(self, teeny: Teeny, tmp_path: Path) -> None:
        path = tmp_path / "ops.toml"
        teeny("init", KERNEL, "-o", path)
        path.write_text(path.read_text().replace('grid = ["TODO"]', 'grid = ["p2"]'))
        assert len(teeny("check", "--json", "-m", path).json["ops"][0]["findings"]) == 7

    def test_run_says_how_many(self, teeny: Teeny, tmp_path: Path) -> None:
        path = tmp_path / "ops.toml"
        teeny("init", KERNEL, "-o", path)
        done = teeny("run", "softmax", "-m", path)
        assert done.code == 1
        assert "8 values of the op are left open" in done.err

    def test_other_ops_of_the_manifest_are_checked(self, teeny: Teeny, tmp_path: Path) -> None:
        path = tmp_path / "ops.toml"
        path.write_text((ROOT / "ops.toml").read_text().replace('ptx = "ptx/', f'ptx = "{ROOT}/ptx/'))
        teeny("init", KERNEL, "-o", path)
        done = teeny("check", "--json", "-m", path)
        assert done.code == 1
        assert {row["op"] for row in done.json["ops"] if row["findings"]} == {"softmax"}
        assert teeny("check", "softmax_triton", "-m", path).code == 0


class TestOptions:
    def test_an_op_that_is_there_is_not_touched(self, teeny: Teeny, tmp_path: Path) -> None:
        path = tmp_path / "ops.toml"
        teeny("init", KERNEL, "-o", path)
        before = path.read_bytes()
        done = teeny("init", KERNEL, "-o", path)
        assert done.code == 2
        assert "op-exists" in done.err
        assert "'softmax'" in done.err
        assert path.read_bytes() == before
        assert teeny("init", KERNEL, "-o", path, "--name", "other").code == 0
        assert path.read_bytes().startswith(before)
        assert set(tomllib.loads(path.read_text())["op"]) == {"softmax", "other"}

    def test_it_is_appended_to_what_ends_without_a_newline(self, teeny: Teeny, tmp_path: Path) -> None:
        path = tmp_path / "mine.toml"
        path.write_text("# mine")
        done = teeny("init", KERNEL, "-o", path)
        assert path.read_text().startswith("# mine\n\n# softmax of")
        assert f"teeny check -m {path}" in done.err
        assert teeny("init", KERNEL, "-o", path, "-q", "--name", "b").err == ""

    def test_a_manifest_that_is_broken_stays_as_it_is(self, teeny: Teeny, tmp_path: Path) -> None:
        path = tmp_path / "ops.toml"
        for text in ("[op", "op = 1\n"):
            path.write_text(text)
            assert teeny("init", KERNEL, "-o", path).code == 2
            assert path.read_text() == text
        assert sorted(tmp_path.iterdir()) == [path]

    def test_every_entry_has_a_table_or_those_named(self, teeny: Teeny) -> None:
        file = CORPUS / "nvcc" / "templates.ptx"
        _, ops = drafted(teeny, file)
        assert len(ops) == 3
        assert len({op["entry"] for op in ops.values()}) == 3
        entry = next(iter(ops.values()))["entry"]
        _, one = drafted(teeny, file, "--entry", entry, "--name", "it")
        assert one["it"]["entry"] == entry

    def test_what_cannot_be_is_refused(self, teeny: Teeny, tmp_path: Path) -> None:
        file = CORPUS / "nvcc" / "templates.ptx"
        assert "unknown-entry" in teeny("init", file, "--entry", "nope").err
        assert "bad-option" in teeny("init", file, "--name", "it").err
        assert "not-a-file" in teeny("init", tmp_path).err
        assert "file-not-found" in teeny("init", tmp_path / "none.ptx").err
        assert "unwritable-path" in teeny("init", KERNEL, "-o", tmp_path / "none" / "ops.toml").err


@pytest.mark.parametrize(
    ("file", "name", "args"),
    [
        ("nvcc/half_arithmetic.sm_80.ptx", "brain", ["ptr p0", "ptr p1", "bf16 p2"]),
        ("clang/saxpy.ptx", "saxpy", ["i32 p0", "f32 p1", "ptr p2", "ptr p3"]),
        ("clang/functions.ptx", "fill_2", ["ptr p0", "i64 p1"]),
        ("nvcc/scalar_types.ptx", "every_scalar",
         ["i8 p0", "i8 p1", "u8 p2", "i16 p3", "i16 p4", "i32 p5", "i32 p6", "i64 p7", "u64 p8", "f32 p9", "f64 p10",
          "ptr p11"]),
        ("numba/scale.ptx", "scale",
         ["ptr null", "ptr null", "i64 p0.size", "i64 p0.itemsize", "ptr p0", "i64 p0.shape[0]", "i64 p0.itemsize",
          "ptr null", "ptr null", "i64 p1.size", "i64 p1.itemsize", "ptr p1", "i64 p1.shape[0]", "i64 p1.itemsize",
          "f32 p2"]),
    ],
)  # fmt: skip
def test_kinds(teeny: Teeny, file: str, name: str, args: list[str]) -> None:
    _, ops = drafted(teeny, CORPUS / file)
    assert ops[name]["args"] == args


def test_buffers_and_what_is_no_extent(teeny: Teeny) -> None:
    _, ops = drafted(teeny, CORPUS / "clang" / "saxpy.ptx")
    op = ops["saxpy"]
    assert op["inputs"] == [{"name": "p2", "shape": [OPEN]}, {"name": "p3", "shape": [OPEN]}]
    assert op["output"] == {"name": "p3", "inout": "p3"}
    assert (op["scalars"], op["dims"]) == ({"p1": OPEN}, {"p0": OPEN})


def test_a_maximum_of_floats_by_atomics_on_integers(teeny: Teeny) -> None:
    """As Triton takes it, and many by hand: the order of floats of one sign is that of their bits."""
    text, ops = drafted(teeny, CORPUS / "triton" / "atomics.ptx")
    assert ops["atomics"]["inputs"][1] == {"name": "p1", "shape": [OPEN], "init": "zeros"}
    assert "updated atomically, as f32" in text
