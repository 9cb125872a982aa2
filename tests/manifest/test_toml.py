from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from teenycli.errors import Finding, TeenyError
from teenycli.manifest.toml import key_lines, read_toml

pytestmark = pytest.mark.unit


def read(folder: Path, text: str | bytes) -> dict[str, Any]:
    path = folder / "ops.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_toml(path)[1]


def error(folder: Path, text: str | bytes) -> Finding:
    with pytest.raises(TeenyError) as caught:
        read(folder, text)
    finding = caught.value.finding
    assert finding.where is not None
    assert finding.where.file == str(folder / "ops.toml")
    return finding


@pytest.mark.parametrize("text", ["a = 1\n", "\ufeffa = 1", "a = 1\r\n# x\r\n"])
def test_what_editors_save(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == {"a": 1}


def test_syntax_errors_have_a_line_and_a_column(tmp_path: Path) -> None:
    finding = error(tmp_path, "a = 1\nb = \n")
    assert finding.id == "toml-syntax"
    assert finding.where is not None
    assert (finding.where.line, finding.where.text) == (2, "b = ")
    assert "at line" not in finding.message


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('inputs = [{ name = "x",\n shape = ["N"] }]', "one line"),
        ("consts = { A = 1,\n}", "one line"),
        ("grid = [cdiv(N, 128), 1, 1]", "in quotes"),
        ("grid = [B * 2]", "in quotes"),
        ('args = ["ptr x" "ptr y"]', "comma"),
    ],
)
def test_traps_get_a_hint(tmp_path: Path, text: str, hint: str) -> None:
    assert hint in (error(tmp_path, text).hint or "")


def test_a_table_twice_is_named_as_it_is_written(tmp_path: Path) -> None:
    assert error(tmp_path, "[op.x]\n[op.x]\n").message == "cannot declare op.x twice"


def test_integers_beyond_64_bits(tmp_path: Path) -> None:
    assert read(tmp_path, f"a = {2**64 - 1}\nb = {-(2**63)}") == {"a": 2**64 - 1, "b": -(2**63)}
    finding = error(tmp_path, f"[op.x]\na = [1, {2**64}]")
    assert "64 bits" in finding.message
    assert str(finding.where).endswith("op.x.a[1]")
    for long in ("9" * 5000, "0x" + "f" * 5000):
        assert "64 bits" in error(tmp_path, f"a = {long}").message


@pytest.mark.parametrize(
    "text",
    ["a=" + "[" * 100_000, "a=" + "{a=" * 50_000, "a." * 200_000 + "a=1", "x = {" + "a." * 200_000 + "a=1}",
     '"a" . ' * 100_000 + "a=1", "[" + "a." * 200_000 + "a]", b"a = \xff", b"\0", "a = 1\n" * 2, "a" * 900_000],
)  # fmt: skip
def test_broken_and_hostile_files(tmp_path: Path, text: str | bytes) -> None:
    start = time.monotonic()
    assert error(tmp_path, text).id == "toml-syntax"
    assert time.monotonic() - start < 5


def test_files_that_are_none(tmp_path: Path) -> None:
    for path, id in (
        (tmp_path / "none.toml", "file-not-found"),
        (tmp_path, "not-a-file"),
        (Path("a\0b"), "unreadable"),
    ):
        with pytest.raises(TeenyError) as caught:
            read_toml(path)
        assert caught.value.finding.id == id
    (tmp_path / "large.toml").write_bytes(b"#" * (1 << 20) + b"\n")
    with pytest.raises(TeenyError, match="larger than 1 MiB"):
        read_toml(tmp_path / "large.toml")


def test_lines_of_keys() -> None:
    text = '''# [op.no]
[op.x] # table
ptx = "a"
args = [
  "ptr a",
]
note = """
grid = 1
[op.no]
"""
grid=["1"]
[op.x.dims]
N = 1
[[op."a b".inputs]]
name = "x"
[[ op . "a b" . inputs ]]
name = "y"
dotted.key = 1
'''
    assert key_lines(text) == {
        "op.x": 2, "op.x.ptx": 3, "op.x.args": 4, "op.x.note": 7, "op.x.grid": 11, "op.x.dims": 12, "op.x.dims.N": 13,
        'op."a b".inputs[0]': 14, 'op."a b".inputs[0].name': 15, 'op."a b".inputs[1]': 16,
        'op."a b".inputs[1].name': 17, 'op."a b".inputs[1].dotted.key': 18,
    }  # fmt: skip
