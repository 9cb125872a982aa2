from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.checks.ops import Op, changed, found, kernel
from tests.commands.teeny import Teeny, samples

pytestmark = pytest.mark.unit

SAMPLES = samples()
BACKWARDS = samples(backward=True)
WARNING = {("stride-mismatch", "warning")}


class TestStrideValues:
    @pytest.mark.parametrize("name", ["softmax_cuda", "softmax_triton"])
    def test_strides_of_another_buffer(self, teeny: Teeny, tmp_path: Path, name: str) -> None:
        op = {**SAMPLES[name], "output": {**SAMPLES[name]["output"], "row_stride": "align(COLS + 1, 8)"}}
        assert found(teeny, tmp_path, op) == set()
        args = op["args"]
        assert found(teeny, tmp_path, {**op, "args": [*args[:3], args[4], args[3]]}) == WARNING
        assert found(teeny, tmp_path, changed(op, 4, "i32 COLS")) == WARNING

    @pytest.mark.parametrize(
        ("name", "index", "wrong"),
        [
            ("linear_cuda", 7, "i32 x.row_stride + 1"), ("linear_cuda", 11, "i32 N"),
            ("row_sum_triton", 3, "i32 ROWS + 7"),
            ("linear_f16_triton", 7, "i32 N"), ("conv_bn_silu_triton", 13, "i32 out.shape[3]"),
        ],
    )  # fmt: skip
    def test_samples(self, teeny: Teeny, tmp_path: Path, name: str, index: int, wrong: str) -> None:
        assert found(teeny, tmp_path, changed(SAMPLES[name], index, wrong)) == WARNING

    def test_a_number_of_the_users_own_is_no_stride(self, teeny: Teeny, tmp_path: Path) -> None:
        assert found(teeny, tmp_path, SAMPLES["conv_bn_silu_cuda"], "--dim", "STRIDE=5") == set()

    BODY = (
        "ld.param.u64 %d1,[x]; ld.param.u32 %r1,[s]; mov.u32 %r2,%tid.x; mul.lo.s32 %r3,%r2,%r1; "
        "mul.wide.s32 %d2,%r3,{}; add.s64 %d3,%d1,%d2; st.global.f32 [%d3],%f1;"
    )

    @pytest.mark.parametrize("value", ["N", "M", "-N", "2 * N", "0", "1", "N * M"])
    def test_what_a_kernel_may_walk_by(self, teeny: Teeny, tmp_path: Path, value: str) -> None:
        assert self.found(teeny, tmp_path, 4, value) == set()

    def test_strides_in_bytes(self, teeny: Teeny, tmp_path: Path) -> None:
        assert self.found(teeny, tmp_path, 1, "4 * N") == set()
        assert self.found(teeny, tmp_path, 1, "4 * N + 4") == WARNING

    def test_one_dimension_has_no_stride(self, teeny: Teeny, tmp_path: Path) -> None:
        assert self.found(teeny, tmp_path, 4, "13", shape=["M * N"]) == set()

    def found(self, teeny: Teeny, folder: Path, scale: int, value: str, shape: Any = ("M", "N")) -> Any:
        ptx = kernel(folder, ".param .u64 x, .param .u32 s", self.BODY.format(scale))
        op = {
            "ptx": ptx, "output": {"name": "x", "shape": list(shape)}, "args": ["ptr x", f"i32 {value}"],
            "grid": [1], "block": [1], "dims": {"M": 33, "N": 57},
        }  # fmt: skip
        return found(teeny, folder, op)


class TestIndexReach:
    OP: ClassVar[Op] = {"grid": [1], "block": [1], "args": ["ptr x"], "dims": {"N": 1000}}
    WIDE = "add.s64 %d3,%d1,%d2; st.global.f32 [%d3],%f1;"

    @pytest.mark.parametrize(
        ("index", "reach"),
        [
            ("mul.wide.s32 %d2,%r1,4;", 2**33), ("mul.wide.u32 %d2,%r1,4;", 2**34),
            ("shl.b32 %r2,%r1,2; cvt.s64.s32 %d2,%r2;", 2**31), ("cvt.u64.u32 %d5,%r1; shl.b64 %d2,%d5,2;", 2**34),
            ("cvt.s64.s32 %d5,%r1; mad.lo.s64 %d2,%d5,4,%d4;", 2**33),
        ],
    )  # fmt: skip
    def test_a_word_reaches_so_far(self, teeny: Teeny, tmp_path: Path, index: str, reach: int) -> None:
        ptx = kernel(tmp_path, ".param .u64 x", f"ld.param.u64 %d1,[x]; mov.u32 %r1,%tid.x; {index} {self.WIDE}")
        for size, expected in ((reach // 4, set()), (reach // 4 + 2, {("index-overflow", "error")})):
            op = {**self.OP, "ptx": ptx, "output": {"name": "x", "shape": [size]}}
            assert found(teeny, tmp_path, op) == expected, size

    @pytest.mark.parametrize(
        "index",
        [
            "mov.u32 %r1,%tid.x; cvt.s64.s32 %d4,%r1; mul.lo.s64 %d2,%d4,%d4;",  # 64 bits by 64 bits
            "top: add.s64 %d1,%d1,512; setp.lt.s32 %p1,%r1,%r2; @%p1 bra top;",  # a step at a time
            "ld.param.u64 %d2,[n];",  # from a parameter
        ],
    )
    def test_what_nothing_bounds(self, teeny: Teeny, tmp_path: Path, index: str) -> None:
        ptx = kernel(tmp_path, ".param .u64 x, .param .u64 n", f"ld.param.u64 %d1,[x]; {index} {self.WIDE}")
        op = {**self.OP, "ptx": ptx, "output": {"name": "x", "shape": [2**36]}, "args": ["ptr x", "i64 N"]}
        assert "index-overflow" not in {id for id, _ in found(teeny, tmp_path, op)}

    def test_an_input_may_be_larger_than_what_is_read(self, teeny: Teeny, tmp_path: Path) -> None:
        big = {**SAMPLES["vector_add_cuda"], "inputs": [{"name": "x", "shape": [2**32]}, {"name": "y", "shape": ["N"]}]}
        assert found(teeny, tmp_path, big) == {("index-overflow", "warning")}

    def test_each_launch_may_do_a_part(self, teeny: Teeny, tmp_path: Path) -> None:
        op = {
            **SAMPLES["vector_add_cuda"],
            "cases": [],
            "dims": {"N": 2**30},
            "grid": ["cdiv(N, BLOCK)"],
            "launches": 4,
        }
        op["output"] = {"name": "out", "shape": ["4 * N"]}
        assert ("index-overflow", "error") in found(teeny, tmp_path, op)
        assert found(teeny, tmp_path, changed(op, 2, "ptr out + i * N")) == set()
