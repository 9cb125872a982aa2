"""Rules on null pointers, on members of structs, and on dimensions that a kernel never asks about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.checks.ops import Op, changed, findings, found, kernel
from tests.commands.teeny import Teeny, manifest, samples

pytestmark = pytest.mark.unit

SAMPLES = samples()


def said(teeny: Teeny, folder: Path, op: Op, id: str) -> set[str]:
    """The severities of the findings of this id."""
    rows = teeny("check", "--json", "--select", id, "-m", manifest(folder, it=op)).json["ops"]
    return {finding["severity"] for row in rows for finding in row["findings"]}


class TestNullPointers:
    @staticmethod
    def op(folder: Path, test: str) -> Op:
        body = (
            f"ld.param.u64 %d1,[x]; ld.param.u64 %d2,[y]; {test} ld.global.b64 %d3,[%d2]; add.s64 %d4,%d1,%d3; "
            "ld.global.f32 %f1,[%d4]; st.global.f32 [%d2],%f1;"
        )
        ptx = kernel(folder, ".param .u64 x, .param .u64 y", body)
        return {
            "ptx": ptx, "args": ["ptr null", "ptr y"], "grid": [1], "block": [32],
            "output": {"name": "y", "shape": [2], "init": "zeros"},
        }  # fmt: skip

    def test_one_that_nothing_is_compared_with(self, teeny: Teeny, tmp_path: Path) -> None:
        """Where it is read hangs on data, so that following the threads tells nothing."""
        assert said(teeny, tmp_path, self.op(tmp_path, ""), "access-null") == {"warning"}

    def test_a_launch_is_counted_once(self, teeny: Teeny, tmp_path: Path) -> None:
        """Two members of one argument are null: both are found in the launch, which is the only one."""
        body = (
            "ld.param.u64 %d1,[s]; ld.param.u64 %d2,[s+8]; ld.param.u64 %d3,[y]; ld.global.b64 %d4,[%d3]; "
            "setp.eq.s64 %p1,%d4,0; @%p1 ret; ld.global.f32 %f1,[%d1]; ld.global.f32 %f2,[%d2]; "
            "st.global.f32 [%d3],%f1;"
        )
        op = {
            "ptx": kernel(tmp_path, ".param .align 8 .b8 s[16], .param .u64 y", body), "grid": [1], "block": [1],
            "args": ["{ptr null, ptr null}", "ptr y"], "output": {"name": "y", "shape": [2], "init": "zeros"},
        }  # fmt: skip
        rows = teeny("check", "--json", "--select", "access-null", "-m", manifest(tmp_path, it=op)).json["ops"]
        messages = [finding["message"] for row in rows for finding in row["findings"]]
        assert [message.partition(",")[0] for message in messages] == [
            f"argument 0 '{{ptr null, ptr null}}' at byte {offset} is null".partition(",")[0] for offset in (0, 8)
        ]
        assert "launch" not in str(messages)

    def test_one_for_a_number(self, teeny: Teeny, tmp_path: Path) -> None:
        """What only moves an address is none."""
        body = (
            "ld.param.u64 %d1,[x]; ld.param.u64 %d2,[n]; mov.u32 %r1,%tid.x; cvt.u64.u32 %d3,%r1; "
            "mul.lo.s64 %d3,%d3,%d2; shl.b64 %d3,%d3,2; add.s64 %d3,%d1,%d3; st.global.u32 [%d3],%r1;"
        )
        op = {
            "ptx": kernel(tmp_path, ".param .u64 x, .param .u64 n", body), "grid": [1], "block": [32],
            "output": {"name": "x", "shape": [32], "dtype": "u32"},
        }  # fmt: skip
        assert found(teeny, tmp_path, {**op, "args": ["ptr x", "i64 1"]}) == set()
        assert found(teeny, tmp_path, {**op, "args": ["ptr x", "ptr null"]}) == {("argument-kind", "error")}

    def test_one_that_the_kernel_tests(self, teeny: Teeny, tmp_path: Path) -> None:
        op = self.op(tmp_path, "setp.eq.s64 %p1,%d1,0; @%p1 ret;")
        assert said(teeny, tmp_path, op, "access-null") == set()


class TestMembers:
    BODY = (
        "ld.param.u64 %d1,[v]; ld.param.u32 %r1,[v+8]; mov.u32 %r2,%tid.x; setp.ge.s32 %p1,%r2,%r1; @%p1 ret; "
        "mul.wide.s32 %d2,%r2,4; add.s64 %d3,%d1,%d2; ld.global.f32 %f1,[%d3]; add.f32 %f1,%f1,%f1; "
        "st.global.f32 [%d3],%f1;"
    )

    def op(self, folder: Path, struct: str, **keys: Any) -> Op:
        ptx = kernel(folder, ".param .align 8 .b8 v[16]", self.BODY)
        return {
            "ptx": ptx, "args": [struct], "grid": [1], "block": [32], "dims": {"N": 20},
            "inputs": [{"name": "x", "shape": ["N"], **keys}], "output": {"name": "y", "inout": "x"},
        }  # fmt: skip

    def test_as_it_is(self, teeny: Teeny, tmp_path: Path) -> None:
        assert found(teeny, tmp_path, self.op(tmp_path, "{ptr x, i32 N}")) == set()

    @pytest.mark.parametrize("struct", ["{i32 N, i32 0, ptr x}", "{i32 N, ptr x}", "{i64 N, i32 N}"])
    def test_a_number_where_the_pointer_is(self, teeny: Teeny, tmp_path: Path, struct: str) -> None:
        assert ("argument-kind", "error") in found(teeny, tmp_path, self.op(tmp_path, struct))

    def test_a_pointer_where_the_number_is(self, teeny: Teeny, tmp_path: Path) -> None:
        assert ("argument-kind", "error") in found(teeny, tmp_path, self.op(tmp_path, "{ptr x, ptr x}"))

    def test_a_float_wider_than_what_is_passed(self, teeny: Teeny, tmp_path: Path) -> None:
        body = "ld.param.u64 %d1,[v]; ld.param.f32 %f1,[v+8]; add.f32 %f1,%f1,%f1; st.global.f32 [%d1],%f1;"
        op = {
            "ptx": kernel(tmp_path, ".param .align 8 .b8 v[16]", body), "grid": [1], "block": [1],
            "output": {"name": "y", "shape": [1]},
        }  # fmt: skip
        assert found(teeny, tmp_path, {**op, "args": ["{ptr y, f32 0.5}"]}) == set()
        for struct in ("{ptr y, f16 0.5}", "{ptr y, f16 0.5, f16 0.25}", "{ptr y, i16 1, i16 2}"):
            assert found(teeny, tmp_path, {**op, "args": [struct]}) == {("argument-kind", "error")}

    def test_a_member_where_nothing_is_passed(self, teeny: Teeny, tmp_path: Path) -> None:
        body = "ld.param.u64 %d1,[v]; ld.param.u16 %h1,[v+8]; ld.param.u16 %h2,[v+10]; {} st.global.u16 [%d1],%h3;"
        op = {
            "args": ["{ptr y, u16 7}"],
            "grid": [1],
            "block": [1],
            "output": {"name": "y", "shape": [1], "dtype": "u16"},
        }
        used = kernel(tmp_path, ".param .align 8 .b8 v[16]", body.format("mul.lo.u16 %h3,%h1,%h2;"))
        assert found(teeny, tmp_path, {**op, "ptx": used}) == {("argument-kind", "error")}
        both = {**op, "ptx": used, "args": ["{ptr y, u16 7, u16 8}"]}
        assert found(teeny, tmp_path, both) == set()
        copied = kernel(tmp_path, ".param .align 8 .b8 v[16]", body.format("mov.u16 %h3,%h2;"))
        assert found(teeny, tmp_path, {**op, "ptx": copied}) == set()

    @pytest.mark.parametrize(
        ("struct", "align", "size", "zeros"),
        [("{ptr x, i32 N, i32 0, f64 1}", 16, 32, "u64 0"), ("{f32 1, f32 1, i32 N}", 8, 16, "u32 0"),
         ("{u8 1, u8 2, u8 3}", 8, 8, "bytes 0000000000")],
    )  # fmt: skip
    def test_padding_that_an_alignment_brings(
        self, teeny: Teeny, tmp_path: Path, struct: str, align: int, size: int, zeros: str
    ) -> None:
        op = {**self.op(tmp_path, struct), "ptx": kernel(tmp_path, f".param .align {align} .b8 v[{size}]", "")}
        (finding,) = (each for each in findings(teeny, tmp_path, op) if each["id"] == "argument-width")
        assert f"end the struct with '{zeros}'" in finding["hint"]
        padded = {**op, "args": [f"{struct[:-1]}, {zeros}}}"]}
        assert "argument-width" not in {each["id"] for each in findings(teeny, tmp_path, padded)}

    def test_padding_that_is_copied_byte_by_byte(self, teeny: Teeny, tmp_path: Path) -> None:
        """As nvcc copies a struct that is indexed: to local memory, whole."""
        copies = " ".join(
            f"ld.param.b{bits} %{reg},[v+{at}]; st.local.b{bits} [room+{at}],%{reg};"
            for at, bits, reg in [(0, 64, "d2"), (8, 64, "d3"), (16, 32, "r1"), *((20 + k, 8, "h1") for k in range(4))]
        )
        body = (
            f".local .align 8 .b8 room[24]; {copies} ld.local.u32 %r2,[room+16]; and.b32 %r2,%r2,1; "
            "mul.wide.u32 %d4,%r2,8; mov.u64 %d5,room; add.u64 %d5,%d5,%d4; ld.local.u64 %d1,[%d5]; "
            "ld.global.f32 %f1,[%d1]; add.f32 %f1,%f1,%f1; st.global.f32 [%d1],%f1;"
        )
        op = {
            "ptx": kernel(tmp_path, ".param .align 8 .b8 v[24]", body), "args": ["{ptr y, ptr y, i32 1}"],
            "inputs": [{"name": "x", "shape": [1]}], "output": {"name": "y", "inout": "x"}, "grid": [1], "block": [1],
        }  # fmt: skip
        assert said(teeny, tmp_path, op, "argument-kind") == set()

    @pytest.mark.parametrize(("dtype", "severity"), [("f64", "error"), ("i32", "warning")])
    def test_elements_of_another_type(self, teeny: Teeny, tmp_path: Path, dtype: str, severity: str) -> None:
        op = self.op(tmp_path, "{ptr x, i32 N}", dtype=dtype)
        assert ("buffer-dtype", severity) in found(teeny, tmp_path, op)


class TestAxes:
    @pytest.mark.parametrize(
        "keys", [{"grid": ["cdiv(N, BLOCK)", 2]}, {"grid": [1, "cdiv(N, BLOCK)"]}, {"block": ["BLOCK // 2", 2]}]
    )
    def test_one_that_the_kernel_never_reads(self, teeny: Teeny, tmp_path: Path, keys: dict[str, Any]) -> None:
        op = {**SAMPLES["vector_add_cuda"], "dims": {"N": 700}, "cases": [], **keys}
        assert said(teeny, tmp_path, op, "axis-unread") == {"warning"}

    def test_one_that_it_does(self, teeny: Teeny, tmp_path: Path) -> None:
        assert said(teeny, tmp_path, SAMPLES["linear_cuda"], "axis-unread") == set()

    def test_lanes_and_warps_count_threads_of_any_shape(self, teeny: Teeny, tmp_path: Path) -> None:
        body = (
            "ld.param.u64 %d1,[x]; mov.u32 %r1,%warpid; mul.wide.u32 %d2,%r1,4; add.s64 %d3,%d1,%d2; "
            "st.global.u32 [%d3],%r1;"
        )
        op = {
            "ptx": kernel(tmp_path, ".param .u64 x", body), "args": ["ptr x"], "grid": [1], "block": [32, 4],
            "output": {"name": "x", "shape": [4], "dtype": "u32"},
        }  # fmt: skip
        assert said(teeny, tmp_path, op, "axis-unread") == set()


def test_outputs_that_are_read_before_they_are_written(teeny: Teeny, tmp_path: Path) -> None:
    op = changed(SAMPLES["vector_add_cuda"], 1, "ptr out")
    assert ("output-read", "warning") in found(teeny, tmp_path, op)


class TestPointersThatAreNotFollowed:
    """A pointer may be rounded, be the end of a row, or only be asked for: where that is possible it is a warning."""

    @pytest.mark.parametrize(
        "body",
        [
            "ld.param.u64 %d2,[n]; add.s64 %d2,%d2,15; and.b64 %d1,%d2,-16; st.global.u32 [%d1],7;",
            "ld.param.u64 %d2,[n]; setp.eq.s64 %p1,%d2,0; selp.u32 %r1,1,0,%p1; st.global.u32 [%d1],%r1;",
            "ld.param.u64 %d2,[n]; sub.s64 %d3,%d2,%d1; shr.u64 %d3,%d3,2; st.global.u64 [%d1],%d3;",
        ],
    )
    def test_what_may_be_an_address(self, teeny: Teeny, tmp_path: Path, body: str) -> None:
        op = {
            "ptx": kernel(tmp_path, ".param .u64 x, .param .u64 n", f"ld.param.u64 %d1,[x]; {body}"), "grid": [1],
            "block": [1], "args": ["ptr y", "ptr y"], "inputs": [{"name": "x", "shape": [8]}],
            "output": {"name": "y", "inout": "x"},
        }  # fmt: skip
        assert said(teeny, tmp_path, op, "argument-kind") <= {"warning"}

    def test_a_factor_is_none(self, teeny: Teeny, tmp_path: Path) -> None:
        body = "ld.param.u64 %d1,[x]; ld.param.u64 %d2,[n]; mul.lo.s64 %d3,%d2,%d2; st.global.u64 [%d1],%d3;"
        op = {
            "ptx": kernel(tmp_path, ".param .u64 x, .param .u64 n", body), "grid": [1], "block": [1],
            "args": ["ptr y", "ptr y"], "inputs": [{"name": "x", "shape": [8]}], "output": {"name": "y", "inout": "x"},
        }  # fmt: skip
        assert said(teeny, tmp_path, op, "argument-kind") == {"error"}
