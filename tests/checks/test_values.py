from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.checks.ops import Found, changed, findings, found, hints, kernel
from tests.commands.teeny import Teeny, samples

pytestmark = pytest.mark.unit

SAMPLES = samples()
ADD = SAMPLES["vector_add_cuda"]
WARNING = {("value-out-of-range", "warning")}


class TestValuesFit:
    def of(self, teeny: Teeny, folder: Path, kind: str, body: str, *args: str) -> Found:
        ptx = kernel(folder, f".param .{kind} n", body)
        return {
            pair
            for arg in args
            for pair in found(teeny, folder, {"ptx": ptx, "args": [arg], "grid": [1], "block": [1]})
        }

    def test_only_half_of_it_is_read(self, teeny: Teeny, tmp_path: Path) -> None:
        body = "ld.param.u32 %r1,[n]; add.s32 %r2,%r1,1;"
        assert self.of(teeny, tmp_path, "u64", body, "i64 4294967295", "i64 -1", "i64 -2147483648") == set()
        assert self.of(teeny, tmp_path, "u64", body, "i64 4294967296") == {("value-out-of-range", "error")}
        assert self.of(teeny, tmp_path, "u64", body, "i64 -2147483649") == {("value-out-of-range", "error")}

    def test_a_sign_that_the_kernel_does_not_know(self, teeny: Teeny, tmp_path: Path) -> None:
        body = "ld.param.u32 %r1,[n]; setp.lt.u32 %p1,%r2,%r1;"
        assert self.of(teeny, tmp_path, "u32", body, "i32 -1") == WARNING
        assert self.of(teeny, tmp_path, "u32", body.replace("lt.u32", "lt.s32"), "i32 -1") == set()
        assert self.of(teeny, tmp_path, "u32", body.replace("setp.lt.u32 %p1", "add.s32 %r3"), "i32 -1") == set()

    def test_a_sign_that_it_sees_where_none_is(self, teeny: Teeny, tmp_path: Path) -> None:
        body = "ld.param.u32 %r1,[n]; div.s32 %r2,%r1,7;"
        assert self.of(teeny, tmp_path, "u32", body, "u32 2147483648") == WARNING
        assert self.of(teeny, tmp_path, "u32", body, "u32 2147483647") == set()


class TestScalars:
    def of(self, teeny: Teeny, folder: Path, **keys: Any) -> list[str]:
        op = {**SAMPLES["axpy_bf16_cuda"], "cases": [], **keys}
        return [f["message"] for f in findings(teeny, folder, op) if f["id"] == "scalar-unused"]

    def test_one_that_no_argument_passes(self, teeny: Teeny, tmp_path: Path) -> None:
        args = ["ptr x", "ptr y", "ptr out", "f32 0.7", "i32 N"]
        said = ["no argument passes the scalar 'alpha': whatever it is, the launch stays the same"]
        assert self.of(teeny, tmp_path) == []
        assert self.of(teeny, tmp_path, args=args) == said

    def test_one_in_place_of_another(self, teeny: Teeny, tmp_path: Path) -> None:
        op = {**SAMPLES["axpy_bf16_cuda"], "scalars": {"alpha": 0.7, "beta": 2.0}}
        body = (
            "ld.param.u64 %d1,[x]; ld.param.f32 %f1,[a]; ld.param.f32 %f2,[b]; fma.rn.f32 %f3,%f1,%f1,%f2; "
            "st.global.f32 [%d1],%f3;"
        )
        op = {
            "ptx": kernel(tmp_path, ".param .u64 x, .param .f32 a, .param .f32 b", body), "grid": [1], "block": [1],
            "output": {"name": "x", "shape": [1]}, "scalars": {"a": 0.5, "b": 2.0}, "args": ["ptr x", "f32 a", "f32 b"],
        }  # fmt: skip
        assert found(teeny, tmp_path, op) == set()
        twice = {**op, "args": ["ptr x", "f32 a", "f32 a"]}
        assert hints(teeny, tmp_path, twice, "scalar-unused") == {"arguments 1 and 2 both pass 'a'"}

    @pytest.mark.parametrize(
        "keys",
        [
            {"inputs": [{"name": "x", "shape": ["N"], "init": "full(N, alpha)"}, {"name": "y", "shape": ["N"]}]},
            {"grid": ["cdiv(N, BLOCK) + 0 * int(alpha)"]},
            {"globals": {"gain": "alpha"}},
        ],
    )
    def test_other_ways_to_the_kernel(self, teeny: Teeny, tmp_path: Path, keys: dict[str, Any]) -> None:
        args = ["ptr x", "ptr y", "ptr out", "f32 0.7", "i32 N"]
        assert self.of(teeny, tmp_path, args=args, **keys) == []


class TestExtents:
    @pytest.mark.parametrize(
        ("name", "index", "wrong"),
        [
            ("vector_add_cuda", 3, "i32 N + 1"), ("vector_add_triton", 3, "i32 N - 1"),
            ("softmax_cuda", 2, "i32 COLS - 3"),
            ("linear_cuda", 6, "i32 K + 61"), ("detect_decode_triton", 6, "i32 A - 1"), ("gelu_triton", 2, "i32 2999"),
            ("vector_add_triton", 3, "i32 2 * N"),
        ],
    )  # fmt: skip
    def test_what_is_computed_wrongly(self, teeny: Teeny, tmp_path: Path, name: str, index: int, wrong: str) -> None:
        assert ("extent-mismatch", "warning") in found(teeny, tmp_path, changed(SAMPLES[name], index, wrong))

    @pytest.mark.parametrize(
        "right", ["x.size", "cdiv(N, BLOCK)", "align(N, BLOCK)", "N * x.itemsize", "N // 32", "4096", "N * BLOCK", "64"]
    )
    def test_what_launches_commonly_pass(self, teeny: Teeny, tmp_path: Path, right: str) -> None:
        op = {**ADD, "cases": []}
        assert found(teeny, tmp_path, changed(op, 3, f"i32 {right}")) == set()

    def test_a_number_of_the_users_own(self, teeny: Teeny, tmp_path: Path) -> None:
        op = changed({**ADD, "scalars": {"steps": 777}}, 3, "i32 steps")
        assert found(teeny, tmp_path, op) == set()

    def test_the_nearest_are_said(self, teeny: Teeny, tmp_path: Path) -> None:
        op = changed({**ADD, "cases": []}, 3, "i32 N + 1")
        (hint,) = hints(teeny, tmp_path, op, "extent-mismatch")
        assert hint is not None
        assert hint.startswith("the nearest are 4,096")


def test_an_argument_for_a_hidden_parameter_is_named(teeny: Teeny, tmp_path: Path) -> None:
    op = SAMPLES["vector_add_triton"]
    op = {**op, "args": [*op["args"], "ptr null", "ptr null"]}
    (hint,) = hints(teeny, tmp_path, op, "argument-count")
    assert hint is not None
    assert "teeny passes the hidden parameters itself" in hint
    assert "4 'null', 5 'null'" in hint


class TestMembersOfStructs:
    BODY = (
        "ld.param.u64 %d1,[s]; ld.param.f32 %f1,[s+8]; ld.param.u32 %r1,[s+12]; ld.param.b32 %r2,[s+16]; "
        "setp.lt.s32 %p1,%r1,7; add.f32 %f2,%r2,%f1; @%p1 st.global.f32 [%d1],%f2;"
    )

    @pytest.mark.parametrize(
        ("members", "what"),
        [
            ("ptr x, f32 1, i32 2, f32 3", None), ("ptr x, f32 1, u32 2, f32 3", None),
            ("i64 5, f32 1, i32 2, f32 3", "is a pointer at byte 0"),
            ("ptr x, i32 1, i32 2, f32 3", "holds a floating-point number at byte 8"),
            ("ptr x, f32 1, f32 2, f32 3", "holds an integer at byte 12"),
            ("ptr x, f32 1, i32 2, i32 3", "holds a floating-point number at byte 16"),
            ("ptr x, f32 1, i32 2, bool 1", None),  # no more than a byte of the four
            ("ptr x, ptr x, f32 3", "holds a number of 32 bits at byte 8"),
        ],
    )  # fmt: skip
    def test_each_has_its_kind(self, teeny: Teeny, tmp_path: Path, members: str, what: str | None) -> None:
        ptx = kernel(tmp_path, ".param .align 8 .b8 s[24]", self.BODY)
        op = {"ptx": ptx, "output": {"name": "x", "shape": [4]}, "args": [f"{{{members}}}"], "grid": [1], "block": [1]}
        said = [each["message"] for each in findings(teeny, tmp_path, op) if each["id"] == "argument-kind"]
        assert len(said) == (what is not None)
        assert all(message.endswith(what or "") for message in said)
