"""Launches that are right though few are like them, each beside one that looks alike and is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.checks.ops import Op, kernel
from tests.commands.teeny import Teeny, manifest

pytestmark = pytest.mark.unit

#: The number of a thread in %r1; pointers x and y in %d1 and %d2.
THREAD = "mov.u32 %r2,%ctaid.x; mov.u32 %r3,%ntid.x; mov.u32 %r4,%tid.x; mad.lo.s32 %r1,%r2,%r3,%r4; "
LOADED = THREAD + "ld.param.u64 %d1,[x]; ld.param.u64 %d2,[y]; ld.param.u32 %r5,[n]; ld.param.u32 %r6,[s]; "
PARAMS = ".param .u64 x, .param .u64 y, .param .u32 n, .param .u32 s"
STORED = "mul.wide.s32 %d4,%r1,4; add.s64 %d5,%d2,%d4; st.global.f32 [%d5],%f1;"
BOUND = "setp.ge.s32 %p1,%r1,%r5; @%p1 ret; "


def read(index: str) -> str:
    return f"mul.wide.s32 %d6,{index},4; add.s64 %d7,%d1,%d6; ld.global.f32 %f1,[%d7]; "


def ids(teeny: Teeny, folder: Path, body: str, params: str = PARAMS, **op: Any) -> set[str]:
    """The ids of errors and warnings."""
    made = {
        "ptx": kernel(folder, params, body), "inputs": [{"name": "x", "shape": ["M", "K"]}], "block": [32],
        "output": {"name": "y", "shape": ["N"]}, "grid": ["cdiv(N, 32)"], **op,
    }  # fmt: skip
    row = teeny("check", "--json", "-m", manifest(folder, it=made)).json["ops"][0]
    assert row["error"] is None
    return {finding["id"] for finding in row["findings"] if finding["severity"] != "note"}


class TestStrides:
    DIMS = {"M": 7, "K": 100, "N": 300, "H": 30}  # noqa: RUF012

    @pytest.mark.parametrize(("opcode", "expected"), [("div.s32", set()), ("shr.s32", {"stride-mismatch"})])
    def test_a_remainder_is_no_stride(self, teeny: Teeny, tmp_path: Path, opcode: str, expected: set[str]) -> None:
        """Columns of a slice of H: x[i / H, i % H], and x[.., i >> H] * H for comparison."""
        body = (
            f"{LOADED}{BOUND}{opcode} %r7,%r1,%r6; mul.lo.s32 %r8,%r7,%r6; sub.s32 %r9,%r1,%r8; "
            f"mad.lo.s32 %r10,%r7,100,%r9; {read('%r10')}{STORED}"
        )
        args = ["ptr x", "ptr y", "i32 N", "i32 H + 0"]
        assert ids(teeny, tmp_path, body, args=args, dims=self.DIMS) & {"stride-mismatch"} == expected

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("cdiv(K, PARTS)", set()), ("2", set()), ("K", set()), ("K - 9", {"stride-mismatch"}),
            ("99", {"stride-mismatch"}),
        ],
    )  # fmt: skip
    def test_parts_of_a_row(self, teeny: Teeny, tmp_path: Path, value: str, expected: set[str]) -> None:
        """Each block has a part of the row: x[.., block * s + thread]."""
        body = f"{LOADED}mad.lo.s32 %r7,%r2,%r6,%r4; {read('%r7')}{STORED}"
        op: Op = {"args": ["ptr x", "ptr y", "i32 N", f"i32 {value}"], "dims": {"M": 7, "K": 100, "N": 160, "PARTS": 5}}
        assert ids(teeny, tmp_path, body, **op) & {"stride-mismatch"} == expected


#: Of a register that held null before, which no compiler reuses.
NULL = {"access-null"}


class TestInPlace:
    PLACE: Op = {  # noqa: RUF012
        "inputs": [{"name": "cache", "shape": ["H", "L"]}, {"name": "x", "shape": ["N"]}],
        "output": {"name": "y", "shape": ["H", "L"], "inout": "cache"},
        "args": ["ptr x", "ptr cache", "i32 N", "i32 0"],
        "dims": {"N": 64, "H": 4, "L": 64}, "grid": ["N // 32"],
    }  # fmt: skip

    def test_a_part_that_is_only_written(self, teeny: Teeny, tmp_path: Path) -> None:
        assert ids(teeny, tmp_path, f"{LOADED}{read('%r1')}{STORED}", **self.PLACE) == set()

    def test_what_is_updated_up_to_somewhere(self, teeny: Teeny, tmp_path: Path) -> None:
        body = f"{LOADED}mov.u64 %d1,%d2; {read('%r1')}{STORED}"
        op = {**self.PLACE, "inputs": self.PLACE["inputs"][:1], "args": ["ptr null", *self.PLACE["args"][1:]]}
        assert ids(teeny, tmp_path, body, **op) - NULL == {"output-not-covered"}
        assert ids(teeny, tmp_path, body, **{**op, "grid": [8]}) - NULL == set()

    def test_all_but_a_diagonal(self, teeny: Teeny, tmp_path: Path) -> None:
        skip = "rem.s32 %r7,%r1,65; setp.eq.s32 %p2,%r7,0; @%p2 ret; "
        body = f"{LOADED}mov.u64 %d1,%d2; {skip}{read('%r1')}{STORED}"
        op = {**self.PLACE, "inputs": self.PLACE["inputs"][:1], "args": ["ptr null", *self.PLACE["args"][1:]]}
        assert ids(teeny, tmp_path, body, **{**op, "grid": [8]}) - NULL == set()


class TestPartsOfInputs:
    @pytest.mark.parametrize(
        ("step", "shape", "passed", "expected"),
        [
            (10, ["N", 10], "x", set()), (10, ["N", 10], "x + 9", set()), (10, ["N * 10"], "x", set()),
            (1, ["4 * N"], "x", set()),
            (1, ["4 * N"], "x + N", set()), (1, ["4", "N"], "x", set()),
            (11, ["N + N // 10 + 1", 10], "x", {"input-hardly-read"}),
        ],
    )  # fmt: skip
    def test_a_column_a_begin_and_a_view(
        self, teeny: Teeny, tmp_path: Path, step: int, shape: list[Any], passed: str, expected: set[str]
    ) -> None:
        """The first column is chosen where nothing is bounded by 1; a walk across rows is one by a wrong stride."""
        body = f"{LOADED}mul.lo.s32 %r7,%r1,{step}; {read('%r7')}{STORED}"
        op: Op = {"args": [f"ptr {passed}", "ptr y", "i32 N", "i32 0"], "dims": {"N": 320}, "block": [32]}
        assert ids(teeny, tmp_path, body, **op, inputs=[{"name": "x", "shape": shape}]) == expected


def test_a_pointer_that_only_a_debugger_reads(teeny: Teeny, tmp_path: Path) -> None:
    """Code for debuggers loads each parameter, and keeps it."""
    params = f"{PARAMS}, .param .u64 z"
    loaded = f"{LOADED}ld.param.u64 %d8,[z]; mov.b64 %d9,%d8; "
    op: Op = {"args": ["ptr x", "ptr y", "i32 N", "i32 0", "ptr null"], "dims": {"M": 5, "K": 8, "N": 32}}
    assert ids(teeny, tmp_path, f"{loaded}{read('%r1')}{STORED}", params, **op) == set()
    body = f"{loaded}add.s64 %d10,%d9,1; {read('%r1')}{STORED} st.global.u64 [%d2],%d10;"
    assert "argument-kind" in ids(teeny, tmp_path, body, params, **op)
