"""``--global`` and the manifest's ``globals``: what variables of the PTX hold."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands.teeny import DEVICE, Done, Teeny, manifest

pytestmark = pytest.mark.device

CPU = ("--device", "cpu")

#: Copies its variables to what its parameter points to: a float, four bytes, a constant, one that is managed.
PTX = """
.version 7.8
.target sm_80
.address_size 64
.visible .global .align 4 .f32 scale = 0f3f800000;
.visible .global .align 4 .b8 bytes[4] = {1, 2, 3, 4};
.visible .const .align 4 .u32 limit = 9;
.visible .global .attribute(.managed) .align 8 .b8 table[8];
.visible .global .align 4 .u32 idle;
.visible .entry k(.param .u64 p)
{
.reg .b64 %rd1; .reg .b32 %r1;
ld.param.u64 %rd1, [p];
ld.global.b32 %r1, [scale]; st.global.b32 [%rd1], %r1;
ld.global.b32 %r1, [bytes]; st.global.b32 [%rd1+4], %r1;
ld.const.b32 %r1, [limit]; st.global.b32 [%rd1+8], %r1;
ld.global.b32 %r1, [table]; st.global.b32 [%rd1+12], %r1;
ld.global.b32 %r1, [table+4]; st.global.b32 [%rd1+16], %r1;
ret;
}
"""


@pytest.fixture
def ptx(tmp_path: Path) -> Path:
    path = tmp_path / "k.ptx"
    path.write_text(PTX)
    return path


def once(teeny: Teeny, *options: str) -> Done:
    return teeny("run", "--ptx", "k.ptx", "--grid", "1", "--block", "1", "-a", "p=u32[5]", "--save", "p=p.npy",
                 *DEVICE, *options)  # fmt: skip


def bits(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


@pytest.mark.usefixtures("ptx")
@pytest.mark.devices("cpu", "cuda")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), {}),
        (("--global", "scale=2.5"), {0: bits(2.5)}),
        (("--global", "bytes=f32:2.5", "--global", "limit=11"), {1: bits(2.5), 2: 11}),
        (("--global", "bytes=arange"), {1: 0x03020100}),
        (("--global", "table=u32:arange", "--global", "idle=5"), {4: 1}),
        (("--global", "table=f32:@t.npy"), {3: bits(0.5), 4: bits(-1)}),
        (("--global", "table=i64:-2"), {3: 2**32 - 2, 4: 2**32 - 1}),
    ],
)
def test_variables_hold_what_is_said(teeny: Teeny, options: tuple[str, ...], words: dict[int, int]) -> None:
    np.save("t.npy", np.array([0.5, -1], np.float32))
    done = once(teeny, *options)
    assert done.code == 0, done.err
    expected = [bits(1), 0x04030201, 9, 0, 0]
    for at, word in words.items():
        expected[at] = word
    assert np.load("p.npy").tolist() == expected


@pytest.mark.usefixtures("ptx")
@pytest.mark.parametrize(
    ("option", "id", "said"),
    [
        ("scal=1", "unknown-global", "did you mean 'scale'?"),
        ("x=1", "unknown-global", "there are scale, bytes, limit, table, idle"),
        ("scale=f64:1", "global-type", "'scale' has 4 bytes, no whole number of f64, 8 bytes each"),
        ("limit=-1", "value-out-of-range", "--global limit"),
        ("table=f32:@t.npy", "missing-file", "--global table"),
        ("table=ptr:random", "pointer-init", "--global table"),
        ("table", "usage", "'table' is not NAME=VALUE"),
    ],
)
def test_what_cannot_be_is_said(teeny: Teeny, option: str, id: str, said: str) -> None:
    done = once(teeny, "--global", option)
    assert done.code == 2
    assert said in done.err
    assert f"[{id}]" in done.err


def op(**keys: Any) -> dict[str, Any]:
    return {"ptx": "k.ptx", "output": {"name": "out", "shape": ["5"], "dtype": "u32"}, "args": ["ptr out"],
            "grid": ["1"], "block": ["1"], **keys}  # fmt: skip


@pytest.mark.devices("cpu", "cuda")
def test_the_manifest_says_it_and_the_command_line_overrides(teeny: Teeny, ptx: Path) -> None:
    manifest(ptx.parent, k=op(globals={"scale": 2, "limit": 7, "table": "f32:t.npy"}))
    np.save("t.npy", np.array([0.5, -1], np.float32))
    done = teeny("run", "k", *DEVICE, "--global", "limit=8", "--save", "out=out.npy")
    assert done.code == 0, done.err
    assert np.load("out.npy").tolist() == [bits(2), 0x04030201, 8, bits(0.5), bits(-1)]


def test_a_name_in_the_manifest_that_the_ptx_lacks(teeny: Teeny, ptx: Path) -> None:
    manifest(ptx.parent, k=op(globals={"scala": 2}))
    for command, code in ((("check",), 1), (("run", "k", *CPU), 1), (("run", "k", *CPU, "--no-check"), 2)):
        done = teeny(*command)
        said = done.out + done.err
        assert (done.code, "error[unknown-global]" in said) == (code, True), said
        assert "op.k.globals.scala" in said
        assert "did you mean 'scale'?" in said


#: Tells what its count is, and a variable that another one points to, and raises both.
COUNTS = """
.version 7.8
.target sm_80
.address_size 64
.global .align 4 .u32 count = 5;
.visible .global .align 4 .u32 other = 70;
.global .align 8 .u64 place = generic(other);
.visible .entry k(.param .u64 p)
{
.reg .b64 %rd<3>; .reg .b32 %r<3>;
ld.param.u64 %rd1, [p];
ld.global.b32 %r1, [count]; st.global.b32 [%rd1], %r1; add.u32 %r1, %r1, 1; st.global.b32 [count], %r1;
ld.global.u64 %rd2, [place]; ld.u32 %r2, [%rd2]; st.global.b32 [%rd1+4], %r2; add.u32 %r2, %r2, 1; st.u32 [%rd2], %r2;
ret;
}
"""


@pytest.mark.devices("cpu", "cuda")
def test_a_case_begins_with_the_variables_of_the_ptx_and_its_launches_share_them(teeny: Teeny, tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(COUNTS)
    op = {
        "ptx": "k.ptx", "output": {"name": "p", "shape": ["N"], "dtype": "u32", "init": 0}, "args": ["ptr p + 2 * i"],
        "launches": "2", "block": [1], "grid": ["1"], "dims": {"N": 4}, "cases": [{"N": 5}, {"N": 6}],
        "reference": "concatenate(([5, 70, 6, 71], zeros(N - 4)))",
    }  # fmt: skip
    manifest(tmp_path, one=op)
    done = teeny("run", "one", "--case", "all", "--json", *DEVICE)
    assert (done.code, [row["ok"] for row in done.json["compare"]]) == (0, [True] * 3), done.err


@pytest.mark.usefixtures("ptx")
def test_what_variables_are_set_to_is_shown(teeny: Teeny) -> None:
    done = once(teeny, *CPU, "--global", "scale=2", "--global", "bytes=u8:arange")
    assert re.findall(r"variable +(\w+ = \S+)", done.out) == ["scale = 2", "bytes = u8:arange"]
    document = once(teeny, *CPU, "--global", "scale=2", "--json").json
    assert document["ops"][0]["variables"] == {"scale": "2"}
