from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tests.commands.teeny import ROOT, Teeny

pytestmark = pytest.mark.unit

TRITON = ROOT / "ptx" / "triton" / "softmax.ptx"
CUDA = ROOT / "ptx" / "cuda" / "vector_add.ptx"


def test_json_has_every_key_of_the_design(teeny: Teeny) -> None:
    (file,) = teeny("entries", "--json", TRITON).json
    assert {"file", "version", "target", "address_size", "sm", "error", "entries"} <= file.keys()
    assert (file["target"], file["sm"], file["address_size"], file["error"]) == ("sm_80", 80, 64, None)
    (entry,) = file["entries"]
    assert {"name", "demangled", "line", "params", "reqntid", "maxntid", "minnctapersm", "maxnreg", "cluster",
            "shared_static", "shared_dynamic", "metadata"} <= entry.keys()  # fmt: skip
    assert (entry["name"], entry["reqntid"], entry["maxntid"]) == ("softmax", [128, 1, 1], None)
    assert entry["shared_dynamic"] is True
    assert entry["metadata"]["shared"] == 16
    first, *_, last = entry["params"]
    assert first == {
        "index": 0, "name": "softmax_param_0", "type": "u64", "size": 8, "align": 8, "offset": 0,
        "pointer": {"space": "global", "align": 1}, "hidden": False, "usage": None,
    }  # fmt: skip
    assert (last["hidden"], last["offset"]) == (True, 40)


def test_verbose_tells_usage(teeny: Teeny) -> None:
    (file,) = teeny("entries", "-v", "--json", CUDA).json
    x, _, out, n = (param["usage"] for param in file["entries"][0]["params"])
    assert [access["kind"] for access in x["accesses"]] == ["load"]
    assert [access["kind"] for access in out["accesses"]] == ["store"]
    assert n["pointer"] is False


def test_the_table_is_plain_and_whole_when_piped(teeny: Teeny) -> None:
    done = teeny("entries", TRITON, CUDA)
    assert done.code == 0
    assert "\x1b" not in done.out
    assert "softmax_param_6" in done.out
    assert "vector_add_param_3" in done.out
    assert "hidden" in done.out


def test_a_file_that_cannot_be_read_does_not_hide_the_others(teeny: Teeny) -> None:
    done = teeny("entries", "missing.ptx", CUDA)
    assert done.code == 2
    assert "vector_add" in done.out
    assert "missing.ptx" in done.err
    assert "no such file" in done.err
    first, second = teeny("entries", "--json", "missing.ptx", CUDA).json
    assert (first["error"]["id"], first["entries"]) == ("file-not-found", [])
    assert second["error"] is None


def test_standard_input(teeny: Teeny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CUDA.read_bytes())))
    (file,) = teeny("entries", "--json", "-").json
    assert file["file"] == "<stdin>"
    assert file["entries"][0]["name"] == "vector_add"


def test_offsets_of_another_architecture(teeny: Teeny, tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(
        ".version 8.7\n.target sm_80\n.address_size 64\n.entry k(.param .align 64 .b8 m[128]) { ret; }\n"
    )
    assert teeny("entries", "--json", "k.ptx").json[0]["entries"][0]["params"][0]["offset"] == 32
    (file,) = teeny("entries", "--json", "--sm", "90", "k.ptx").json
    assert (file["sm"], file["entries"][0]["params"][0]["offset"]) == (90, 48)
    done = teeny("entries", "--sm", "ninety", "k.ptx")
    assert (done.code, "'ninety' is no GPU target" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("content", "id"),
    [
        (b"", "not-ptx"), (b"\n \n", "not-ptx"), (b"\x7fELF\x02\x01", "not-ptx"), (bytes(range(256)), "not-ptx"),
        (b"hello world\n", "syntax"), (b"\xff\xfe\x00", "not-ptx"), (b".version 8.0\n", "syntax"),
        (b".version 8.0\n.target sm_80\n.entry k() { add", "syntax"), (b".version 8.0\n.target sm_80\n\0\0", None),
    ],
)  # fmt: skip
def test_bad_files(teeny: Teeny, tmp_path: Path, content: bytes, id: str | None) -> None:
    (tmp_path / "k.ptx").write_bytes(content)
    done = teeny("entries", "--json", "k.ptx")
    error = done.json[0]["error"]
    assert (done.code, error and error["id"]) == (2 if id else 0, id)


def test_a_directory(teeny: Teeny, tmp_path: Path) -> None:
    done = teeny("entries", tmp_path)
    assert (done.code, "directory" in done.err) == (2, True)


def test_a_syntax_error_shows_line_and_caret(teeny: Teeny, tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(".version 8.7\n.target sm_80\n.entry k(.param .u63 x) { ret; }\n")
    done = teeny("entries", "k.ptx")
    assert "k.ptx:3:17" in done.err
    assert ".entry k(.param .u63 x) { ret; }" in done.err
    assert "did you mean '.u64'?" in done.err or "did you mean" in done.err
    assert "^" in done.err


@pytest.mark.parametrize("sample", sorted((ROOT / "ptx").glob("*/*.ptx")), ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_a_sample_cut_off_anywhere_is_an_error_or_whole(teeny: Teeny, tmp_path: Path, sample: Path) -> None:
    text = sample.read_bytes()
    for keep in range(0, len(text), max(len(text) // 40, 1)):
        (tmp_path / "cut.ptx").write_bytes(text[:keep])
        assert teeny("entries", "-v", "cut.ptx").code in (0, 2)
