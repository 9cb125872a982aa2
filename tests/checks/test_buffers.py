from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from tests.checks.ops import Op, changed, found, hints, kernel
from tests.commands.teeny import Teeny, samples

pytestmark = pytest.mark.unit

SAMPLES = samples()
ADD = SAMPLES["vector_add_cuda"]


class TestUnusedBuffers:
    def test_an_input_in_another_ones_place(self, teeny: Teeny, tmp_path: Path) -> None:
        op = changed(ADD, 1, "ptr x")
        assert found(teeny, tmp_path, op) == {("buffer-unused", "warning")}
        assert hints(teeny, tmp_path, op, "buffer-unused") == {"arguments 0 and 1 both point to 'x'"}

    def test_an_output_that_nothing_can_write(self, teeny: Teeny, tmp_path: Path) -> None:
        assert ("buffer-unused", "error") in found(teeny, tmp_path, changed(ADD, 2, "ptr y"))

    def test_a_member_of_a_struct_points(self, teeny: Teeny, tmp_path: Path) -> None:
        body = "ld.param.u64 %d1,[s]; ld.param.u32 %r1,[s+8]; st.global.u32 [%d1],%r1;"
        ptx = kernel(tmp_path, ".param .align 8 .b8 s[16]", body)
        op = {"ptx": ptx, "output": {"name": "x", "shape": [4], "dtype": "i32"}, "grid": [1], "block": [1]}
        assert found(teeny, tmp_path, {**op, "args": ["{ptr x, i32 7}"]}) == set()
        given = {**op, "inputs": [{"name": "y", "shape": [4], "dtype": "i32"}], "args": ["{ptr y, i32 7}"]}
        assert found(teeny, tmp_path, given) == {("buffer-unused", "error")}

    def test_a_tensor_map_points(self, teeny: Teeny, tmp_path: Path) -> None:
        assert found(teeny, tmp_path, SAMPLES["scale_tma_cuda"]) == set()

    def test_a_launch_of_several_is_enough(self, teeny: Teeny, tmp_path: Path) -> None:
        op = SAMPLES["channel_cat_cuda"]
        assert found(teeny, tmp_path, op) == set()
        assert found(teeny, tmp_path, changed(op, 0, "ptr inputs[0]")) >= {("buffer-unused", "warning")}

    def test_a_backward_needs_its_gradient_and_nothing_else(self, teeny: Teeny, tmp_path: Path) -> None:
        op = samples(backward=True)["gelu_triton"]
        assert found(teeny, tmp_path, op) == set()
        op["backward"]["args"][0] = "ptr x"
        assert found(teeny, tmp_path, op) == {("buffer-unused", "warning")}


class TestUnusedParameters:
    BODY = "ld.param.u64 %d1,[a]; mov.b32 %r1,7; st.global.u32 [%d1],%r1;"
    OP: ClassVar[Op] = {"output": {"name": "x", "shape": [4], "dtype": "i32"}, "grid": [1], "block": [1]}

    def test_a_note(self, teeny: Teeny, tmp_path: Path) -> None:
        ptx = kernel(tmp_path, ".param .u64 a, .param .u32 b", self.BODY)
        op = {**self.OP, "ptx": ptx, "args": ["ptr x", "i32 3"]}
        assert found(teeny, tmp_path, op) == {("unused-parameter", "note")}
        assert found(teeny, tmp_path, {**op, "ignore": {"unused-parameter": "kept for ABI"}}) == set()

    def test_nothing_passed_for_it_is_meant(self, teeny: Teeny, tmp_path: Path) -> None:
        ptx = kernel(tmp_path, ".param .u64 a, .param .u32 b, .param .u64 c", self.BODY)
        assert found(teeny, tmp_path, {**self.OP, "ptx": ptx, "args": ["ptr x", "i32 0", "ptr null"]}) == set()

    def test_an_output_for_it_is_not_written(self, teeny: Teeny, tmp_path: Path) -> None:
        ptx = kernel(tmp_path, ".param .u64 a, .param .u64 b", self.BODY)
        op = {**self.OP, "ptx": ptx, "inputs": [{"name": "y", "shape": [4], "dtype": "i32"}]}
        assert ("buffer-unused", "error") in found(teeny, tmp_path, {**op, "args": ["ptr y", "ptr x"]})
