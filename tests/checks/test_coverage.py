"""What launches go over: where a warning would be wrong, and where silence was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.checks.ops import Op, changed, kernel
from tests.commands.teeny import Teeny, manifest, samples

pytestmark = pytest.mark.unit

SAMPLES = samples()
ADD = {**SAMPLES["vector_add_cuda"], "cases": [], "dims": {"N": 1000}}
#: %r1 is the index of the thread, %d2 four times it; x and y are in %d8 and %d9, n in %r9.
START = (
    "ld.param.u64 %d8,[x]; ld.param.u64 %d9,[y]; ld.param.u32 %r9,[n]; mov.u32 %r2,%ctaid.x; mov.u32 %r3,%tid.x; "
    "mad.lo.s32 %r1,%r2,32,%r3; mul.wide.s32 %d2,%r1,4; add.s64 %d4,%d9,%d2; "
)
PARAMS = ".param .u64 x, .param .u64 y, .param .u32 n"


def said(teeny: Teeny, folder: Path, op: Op) -> dict[str, dict[str, Any]]:
    """The findings by id, notes aside."""
    rows = teeny("check", "--json", "-m", manifest(folder, it=op)).json["ops"]
    assert not any(row["error"] for row in rows), rows
    findings = (finding for row in rows for finding in row["findings"])
    return {finding["id"]: finding for finding in findings if finding["severity"] != "note"}


class TestOutputs:
    def test_one_that_no_thread_writes(self, teeny: Teeny, tmp_path: Path) -> None:
        found = said(teeny, tmp_path, changed(ADD, 3, "i32 0"))["output-not-covered"]
        assert found["severity"] == "error"
        assert found["message"] == "no thread writes any of the 1,000 elements of 'out'"

    def test_one_in_place_or_begun(self, teeny: Teeny, tmp_path: Path) -> None:
        op = {**SAMPLES["accumulate_cuda"], "cases": []}
        assert said(teeny, tmp_path, changed(op, 2, "i32 0"))["output-not-covered"]["severity"] == "warning"
        begun = {**ADD, "output": {"name": "out", "shape": ["N"], "init": "zeros"}}
        assert said(teeny, tmp_path, changed(begun, 3, "i32 0"))["output-not-covered"]["severity"] == "warning"
        assert said(teeny, tmp_path, begun) == {}

    def test_no_launch_at_all_is_told_once(self, teeny: Teeny, tmp_path: Path) -> None:
        assert said(teeny, tmp_path, {**ADD, "grid": [0]}).keys() == {"grid-zero"}

    def test_a_part_that_a_scalar_names(self, teeny: Teeny, tmp_path: Path) -> None:
        op = {**SAMPLES["accumulate_cuda"], "cases": [], "scalars": {"active": 300}}
        args = [*op["args"][:2], "i32 active"]
        assert said(teeny, tmp_path, {**op, "args": args}) == {}
        assert said(teeny, tmp_path, {**op, "args": args, "scalars": {"active": 300, "other": 1}}).keys() == {
            "scalar-unused"
        }

    @pytest.mark.parametrize(("value", "expected"), [("%r1", {"output-overlap"}), ("7", set())])
    def test_the_same_from_all_blocks(self, teeny: Teeny, tmp_path: Path, value: str, expected: set[str]) -> None:
        body = f"{START} st.global.u32 [%d9],{value}; st.global.u32 [%d4],1;"
        op = {
            "ptx": kernel(tmp_path, PARAMS, body), "args": ["ptr null", "ptr y", "i32 0"], "grid": [2], "block": [32],
            "output": {"name": "y", "shape": [64], "dtype": "u32"},
        }  # fmt: skip
        assert said(teeny, tmp_path, op).keys() == expected

    def test_under_a_lock(self, teeny: Teeny, tmp_path: Path) -> None:
        add = "ld.global.u32 %r5,[%d9]; add.s32 %r5,%r5,%r1; st.global.u32 [%d9],%r5;"
        lock = "L: atom.global.cas.b32 %r6,[%d8],0,1; setp.ne.s32 %p1,%r6,0; @%p1 bra L;"
        op = {
            "args": ["ptr x", "ptr y", "i32 0"], "grid": [2], "block": [1],
            "output": {"name": "y", "shape": [1], "dtype": "u32", "init": "zeros"},
            "inputs": [{"name": "x", "shape": [1], "dtype": "i32", "init": "zeros"}],
            "ignore": {"input-written": "the lock"},
        }  # fmt: skip
        locked = {**op, "ptx": kernel(tmp_path, PARAMS, f"{START} {lock} {add} atom.global.exch.b32 %r7,[%d8],0;")}
        assert "output-overlap" not in said(teeny, tmp_path, locked)
        assert "output-overlap" in said(teeny, tmp_path, {**op, "ptx": kernel(tmp_path, PARAMS, f"{START} {add}")})


class TestInputs:
    """Of a square of 32 rows."""

    @staticmethod
    def op(folder: Path, index: str, *args: str, **keys: Any) -> Op:
        body = (
            f"{START} {index} mul.wide.s32 %d5,%r4,4; add.s64 %d6,%d8,%d5; ld.global.u32 %r5,[%d6]; "
            "st.global.u32 [%d4],%r5;"
        )
        return {
            "ptx": kernel(folder, PARAMS, body), "args": ["ptr x", "ptr y", *(args or ("i32 0",))], "grid": [1],
            "block": [32], "inputs": [{"name": "x", "shape": [32, 32], "dtype": "u32"}],
            "output": {"name": "y", "shape": [32], "dtype": "u32"}, **keys,
        }  # fmt: skip

    def test_a_diagonal(self, teeny: Teeny, tmp_path: Path) -> None:
        assert said(teeny, tmp_path, self.op(tmp_path, "mul.lo.s32 %r4,%r1,33;")) == {}
        passed = self.op(tmp_path, "mul.lo.s32 %r4,%r1,%r9;", "i32 33")
        assert said(teeny, tmp_path, passed) == {}
        assert "stride-mismatch" in said(teeny, tmp_path, self.op(tmp_path, "mul.lo.s32 %r4,%r1,%r9;", "i32 3 * 10"))

    def test_the_first_column(self, teeny: Teeny, tmp_path: Path) -> None:
        assert said(teeny, tmp_path, self.op(tmp_path, "mul.lo.s32 %r4,%r1,32;")) == {}
        loop = "mov.u32 %r6,0; L: mad.lo.s32 %r4,%r1,32,%r6; add.s32 %r6,%r6,1; setp.lt.s32 %p1,%r6,%r9; @%p1 bra L;"
        assert "input-hardly-read" in said(teeny, tmp_path, self.op(tmp_path, loop, "i32 1"))

    @pytest.mark.parametrize(("arg", "expected"), [("i32 used", set()), ("i32 5", {"input-hardly-read"})])
    def test_the_first_columns(self, teeny: Teeny, tmp_path: Path, arg: str, expected: set[str]) -> None:
        """As of a cache that is not full: a number of the user's own says how many."""
        loop = (
            "mov.u32 %r6,0; L: mad.lo.s32 %r7,%r1,32,%r6; mul.wide.s32 %d5,%r7,4; add.s64 %d6,%d8,%d5; "
            "ld.global.u32 %r5,[%d6]; add.s32 %r6,%r6,1; setp.lt.s32 %p1,%r6,%r9; @%p1 bra L; mul.lo.s32 %r4,%r1,32;"
        )
        scalars = {"used": 5} if arg == "i32 used" else {}
        assert said(teeny, tmp_path, self.op(tmp_path, loop, arg, scalars=scalars)).keys() == expected


class TestNull:
    @staticmethod
    def op(folder: Path, flag: str, guard: str = "setp.eq.s32 %p1,%r9,0; @%p1 bra D;") -> Op:
        body = f"{START} {guard} add.s64 %d5,%d8,%d2; ld.global.u32 %r5,[%d5]; D: st.global.u32 [%d4],%r5;"
        return {
            "ptx": kernel(folder, PARAMS, body), "args": ["ptr null", "ptr y", flag], "grid": [1], "block": [32],
            "output": {"name": "y", "shape": [32], "dtype": "u32"},
        }  # fmt: skip

    def test_one_that_a_flag_goes_with(self, teeny: Teeny, tmp_path: Path) -> None:
        """Threads are followed, and none goes there."""
        assert said(teeny, tmp_path, self.op(tmp_path, "i32 0")) == {}
        assert said(teeny, tmp_path, self.op(tmp_path, "i32 1"))["access-null"]["severity"] == "error"

    def test_one_that_hangs_on_data(self, teeny: Teeny, tmp_path: Path) -> None:
        op = self.op(tmp_path, "i32 0", "ld.global.u32 %r6,[%d9]; setp.eq.s32 %p1,%r6,0; @%p1 bra D;")
        op["output"]["init"] = "zeros"
        assert said(teeny, tmp_path, op)["access-null"]["severity"] == "warning"


def test_a_hint_is_tried_on_the_threads_too(teeny: Teeny, tmp_path: Path) -> None:
    """Exchanged, the stride would be one that x has, and the bound take threads beyond it."""
    body = (
        f"{START} setp.ge.s32 %p1,%r1,%r9; @%p1 ret; ld.param.u32 %r8,[s]; mul.lo.s32 %r4,%r1,%r8; "
        "mul.wide.s32 %d5,%r4,4; add.s64 %d6,%d8,%d5; ld.global.u32 %r5,[%d6]; st.global.u32 [%d4],%r5;"
    )
    op = {
        "ptx": kernel(tmp_path, f"{PARAMS}, .param .u32 s", body), "args": ["ptr x", "ptr y", "i32 40", "i32 61 + 0"],
        "grid": [1], "block": [64], "inputs": [{"name": "x", "shape": [40, 32], "dtype": "u32"}],
        "output": {"name": "y", "shape": [64], "dtype": "u32", "init": "zeros"},
    }  # fmt: skip
    found = said(teeny, tmp_path, op)
    assert "stride-mismatch" in found
    assert "swapped" not in str(found)


@pytest.mark.parametrize(
    ("value", "expected"), [("2147483647", set()), ("N + 7", {"extent-mismatch"}), ("10 * N", set())]
)
def test_a_limit_beyond_all_data_is_none(teeny: Teeny, tmp_path: Path, value: str, expected: set[str]) -> None:
    body = (
        f"{START} ld.param.u32 %r8,[m]; setp.ge.s32 %p1,%r1,%r9; @%p1 ret; setp.ge.s32 %p1,%r1,%r8; @%p1 ret; "
        "st.global.u32 [%d4],%r1;"
    )
    op = {
        "ptx": kernel(tmp_path, f"{PARAMS}, .param .u32 m", body), "dims": {"N": 100},
        "args": ["ptr null", "ptr y", "i32 N", f"i32 {value}"], "grid": ["cdiv(N, 32)"], "block": [32],
        "output": {"name": "y", "shape": ["N"], "dtype": "u32"},
    }  # fmt: skip
    assert said(teeny, tmp_path, op).keys() == expected


def test_a_clamp_of_data_bounds_nothing(teeny: Teeny, tmp_path: Path) -> None:
    body = f"{START} ld.global.u32 %r5,[%d4]; min.s32 %r5,%r5,%r9; st.global.u32 [%d4],%r5;"
    op = {
        "ptx": kernel(tmp_path, PARAMS, body), "args": ["ptr null", "ptr y", "i32 255"], "grid": [1], "block": [32],
        "output": {"name": "y", "shape": [32], "dtype": "u32", "init": "arange"},
    }  # fmt: skip
    assert said(teeny, tmp_path, op) == {}


def test_a_float_that_is_only_moved_may_be_loaded_as_an_integer(teeny: Teeny, tmp_path: Path) -> None:
    body = "ld.param.u64 %d1,[x]; ld.param.u32 %r1,[a]; st.global.u32 [%d1],%r1;"
    op = {
        "ptx": kernel(tmp_path, ".param .u64 x, .param .f32 a", body), "grid": [1], "block": [1],
        "output": {"name": "x", "shape": [1]},
    }  # fmt: skip
    assert said(teeny, tmp_path, {**op, "args": ["ptr x", "f32 1.5"]}) == {}
    assert said(teeny, tmp_path, {**op, "args": ["ptr x", "i32 1"]}).keys() == {"argument-kind"}
