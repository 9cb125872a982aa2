"""Indices that come out of memory: where the op says what they are, threads are followed through them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.checks.ops import Op, kernel
from tests.commands.teeny import Teeny, manifest

pytestmark = pytest.mark.unit

#: y[i] = x[indices[i]], for i < n.
GATHER = (
    "ld.param.u64 %d1,[x]; ld.param.u64 %d2,[k]; ld.param.u64 %d3,[y]; ld.param.u32 %r1,[n]; mov.u32 %r2,%ctaid.x; "
    "mov.u32 %r3,%tid.x; mad.lo.s32 %r4,%r2,32,%r3; setp.ge.s32 %p1,%r4,%r1; @%p1 ret; mul.wide.s32 %d4,%r4,4; "
    "add.s64 %d5,%d2,%d4; ld{space}.s32 %r5,[%d5]; mul.wide.s32 %d6,%r5,4; add.s64 %d7,%d1,%d6; "
    "ld.global.f32 %f1,[%d7]; add.s64 %d8,%d3,%d4; st.global.f32 [%d8],%f1;"
)


def op(folder: Path, init: Any, space: str = ".global", **keys: Any) -> Op:
    ptx = kernel(folder, ".param .u64 x, .param .u64 k, .param .u64 y, .param .u32 n", GATHER.format(space=space))
    return {
        "ptx": ptx, "dims": {"N": 70, "M": 90}, "block": [32], "grid": ["cdiv(N, 32)"],
        "inputs": [{"name": "x", "shape": ["M"]}, {"name": "k", "shape": ["N"], "dtype": "i32", "init": init, **keys}],
        "output": {"name": "y", "shape": ["N"]}, "args": ["ptr x", "ptr k", "ptr y", "i32 N"],
    }  # fmt: skip


def ids(teeny: Teeny, folder: Path, made: Op) -> set[str]:
    rows = teeny("check", "--json", "-m", manifest(folder, it=made)).json["ops"]
    return {finding["id"] for row in rows for finding in row["findings"]}


@pytest.mark.parametrize("space", [".global", ""])
@pytest.mark.parametrize(
    ("init", "expected"),
    [
        ("(arange(N) * 7) % M", set()), ("arange", set()), ("arange(N) + 20", set()), (3, set()),
        ("arange(N) + 21", {"access-outside"}), ("arange(N) - 1", {"access-outside"}), ("random", set()),
    ],
)  # fmt: skip
def test_what_they_lead_to(teeny: Teeny, tmp_path: Path, init: Any, expected: set[str], space: str) -> None:
    assert ids(teeny, tmp_path, op(tmp_path, init, space)) == expected


def test_of_another_width_than_they_are_loaded_in(teeny: Teeny, tmp_path: Path) -> None:
    """Loads of four bytes from eight: every other element is its neighbour's upper half."""
    assert "access-outside" in ids(teeny, tmp_path, op(tmp_path, "arange(N) + 100", dtype="i64"))


def test_a_file(teeny: Teeny, tmp_path: Path) -> None:
    numbers = [*range(69), 90]
    (tmp_path / "k.bin").write_bytes(b"".join(number.to_bytes(4, "little") for number in numbers))
    assert ids(teeny, tmp_path, op(tmp_path, "k.bin")) == {"access-outside"}


def test_that_the_kernel_itself_changes(teeny: Teeny, tmp_path: Path) -> None:
    """What they hold at first then says nothing, even where the op says that the change is meant."""
    made = op(tmp_path, "arange(N) + 21") | {"ignore": {"input-written": "numbered anew"}}
    assert ids(teeny, tmp_path, made) == {"access-outside", "unused-ignore"}
    text = (tmp_path / "k.ptx").read_text().replace("ld.global.s32 %r5", "st.global.s32 [%d5],%r4; ld.global.s32 %r5")
    (tmp_path / "k.ptx").write_text(text)
    assert ids(teeny, tmp_path, made) == set()
