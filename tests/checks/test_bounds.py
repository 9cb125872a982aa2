"""Bounds that no thread comes to, and elements that a kernel takes apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checks.ops import Op, kernel
from tests.commands.teeny import Teeny, manifest, samples

pytestmark = pytest.mark.unit

SAMPLES = samples()
PARAMS = ".param .u64 x, .param .u32 n"
#: %r4 is the index of the thread, %r1 what is passed as n.
INDEX = (
    "ld.param.u64 %d1,[x]; ld.param.u32 %r1,[n]; mov.u32 %r2,%ctaid.x; mov.u32 %r3,%ntid.x; mov.u32 %r5,%tid.x; "
    "mad.lo.s32 %r4,%r2,%r3,%r5; "
)
ADD = "mul.wide.s32 %d2,%r4,4; add.s64 %d3,%d1,%d2; red.global.add.u32 [%d3],1; "


def said(teeny: Teeny, folder: Path, op: Op, id: str) -> list[str]:
    """The messages of the findings of this id."""
    rows = teeny("check", "--json", "--select", id, "-m", manifest(folder, it=op)).json["ops"]
    assert not any(row["error"] for row in rows), rows
    return [finding["message"] for row in rows for finding in row["findings"]]


class TestBounds:
    @staticmethod
    def op(folder: Path, body: str, *, n: str = "N", grid: int = 2, elements: str = "N") -> Op:
        return {
            "ptx": kernel(folder, PARAMS, INDEX + body), "args": ["ptr x", f"u32 {n}"], "grid": [grid], "block": [64],
            "outputs": [{"name": "x", "shape": [elements], "dtype": "u32", "init": "zeros"}], "dims": {"N": 200},
        }  # fmt: skip

    @pytest.mark.parametrize(
        "guard",
        [
            "setp.ge.s32 %p1,%r4,%r1; @%p1 ret;",
            "setp.le.u32 %p1,%r1,%r4; @%p1 ret;",
            "setp.lt.u32 %p1,%r4,%r1; @!%p1 ret;",
            "sub.s32 %r6,%r1,1; setp.gt.s32 %p1,%r4,%r6; @%p1 ret;",
            "sub.s32 %r6,%r1,1; setp.lt.s32 %p1,%r6,%r4; @%p1 ret;",
        ],
    )
    def test_a_grid_that_ends_before_it(self, teeny: Teeny, tmp_path: Path, guard: str) -> None:
        (message,) = said(teeny, tmp_path, self.op(tmp_path, f"{guard} {ADD}"), "bound-not-reached")
        assert message == "argument 1 'N' bounds the kernel at index 199, and the threads get no further than 127"
        for grid in (4, 5):
            assert said(teeny, tmp_path, self.op(tmp_path, f"{guard} {ADD}", grid=grid), "bound-not-reached") == []
        exact = {**self.op(tmp_path, f"{guard} {ADD}"), "dims": {"N": 128}}
        assert said(teeny, tmp_path, exact, "bound-not-reached") == []
        short = {**self.op(tmp_path, f"{guard} {ADD}"), "dims": {"N": 129}}
        assert len(said(teeny, tmp_path, short, "bound-not-reached")) == 1

    def test_a_loop_that_comes_to_it(self, teeny: Teeny, tmp_path: Path) -> None:
        body = f"setp.ge.s32 %p1,%r4,%r1; @%p1 ret; L: {ADD} add.s32 %r4,%r4,128; setp.lt.s32 %p2,%r4,%r1; @%p2 bra L;"
        assert said(teeny, tmp_path, self.op(tmp_path, body), "bound-not-reached") == []
        # Half of the stride that it needs.
        once = body.replace("@%p2 bra L;", "")
        assert said(teeny, tmp_path, self.op(tmp_path, once, grid=1), "bound-not-reached")

    def test_a_loop_whose_turns_are_counted(self, teeny: Teeny, tmp_path: Path) -> None:
        """Where it ends is not in the comparison with the bound."""
        body = (
            "setp.ge.s32 %p1,%r4,%r1; @%p1 ret; sub.s32 %r6,%r1,%r4; add.s32 %r6,%r6,127; shr.u32 %r6,%r6,7; "
            f"L: {ADD} add.s32 %r4,%r4,128; sub.s32 %r6,%r6,1; setp.ne.s32 %p2,%r6,0; @%p2 bra L;"
        )
        assert said(teeny, tmp_path, self.op(tmp_path, body), "bound-not-reached") == []

    def test_several_elements_a_thread(self, teeny: Teeny, tmp_path: Path) -> None:
        """The last of them comes to it, the others do not."""
        steps = "".join(
            f"setp.lt.s32 %p{k},%r4,%r1; @%p{k} bra A{k}; bra B{k}; A{k}: {ADD} B{k}: add.s32 %r4,%r4,64; "
            for k in (1, 2, 3, 4)
        )
        assert said(teeny, tmp_path, self.op(tmp_path, steps, grid=1), "bound-not-reached") == []
        assert said(teeny, tmp_path, self.op(tmp_path, steps[: len(steps) // 2].rpartition("setp")[0], grid=1),
                    "bound-not-reached")  # fmt: skip

    def test_what_bounds_something_else(self, teeny: Teeny, tmp_path: Path) -> None:
        """A number beyond every buffer, and one of a buffer that is touched all over."""
        body = f"setp.ge.s32 %p1,%r4,%r1; @%p1 ret; {ADD}"
        assert said(teeny, tmp_path, self.op(tmp_path, body, n="1000000"), "bound-not-reached") == []
        assert said(teeny, tmp_path, self.op(tmp_path, body, n="150", elements="128"), "bound-not-reached") == []

    def test_where_the_index_hangs_on_data(self, teeny: Teeny, tmp_path: Path) -> None:
        body = f"ld.global.u32 %r6,[%d1]; add.s32 %r4,%r4,%r6; setp.ge.s32 %p1,%r4,%r1; @%p1 ret; {ADD}"
        assert said(teeny, tmp_path, self.op(tmp_path, body), "bound-not-reached") == []
        behind = f"ld.global.u32 %r6,[%d1]; setp.eq.s32 %p2,%r6,0; @%p2 setp.ge.s32 %p1,%r4,%r1; @%p1 ret; {ADD}"
        assert said(teeny, tmp_path, self.op(tmp_path, behind), "bound-not-reached") == []

    def test_one_of_several_launches_comes_to_it(self, teeny: Teeny, tmp_path: Path) -> None:
        op = self.op(tmp_path, f"setp.ge.s32 %p1,%r4,%r1; @%p1 ret; {ADD}", n="N - 90 * i")
        assert said(teeny, tmp_path, op | {"launches": 2}, "bound-not-reached") == []
        assert len(said(teeny, tmp_path, op | {"launches": 1}, "bound-not-reached")) == 1

    def test_a_member_beside_one_that_a_loop_is_computed_from(self, teeny: Teeny, tmp_path: Path) -> None:
        body = (
            "ld.param.u64 %d1,[x]; ld.param.u32 %r1,[s]; ld.param.u32 %r7,[s+4]; mov.u32 %r2,%ctaid.x; "
            "mov.u32 %r5,%tid.x; mad.lo.s32 %r4,%r2,64,%r5; setp.ge.s32 %p1,%r4,%r1; @%p1 ret; sub.s32 %r6,%r7,%r5; "
            f"setp.lt.s32 %p2,%r6,0; @%p2 ret; {ADD}"
        )
        op = self.op(tmp_path, "") | {
            "ptx": kernel(tmp_path, ".param .u64 x, .param .align 4 .b8 s[8]", body),
            "args": ["ptr x", "{u32 N, u32 1000}"],
        }  # fmt: skip
        (message,) = said(teeny, tmp_path, op, "bound-not-reached")
        assert "argument 1" in message
        assert "at byte 0 bounds the kernel at index 199" in message

    def test_the_samples(self, teeny: Teeny, tmp_path: Path) -> None:
        op = {**SAMPLES["accumulate_cuda"], "grid": ["cdiv(N, 2 * BLOCK)"], "cases": [{"N": 257}]}
        assert said(teeny, tmp_path, op, "bound-not-reached")


class TestPieces:
    @staticmethod
    def op(folder: Path, dtype: str, *, elements: int = 64, scale: int = 1) -> Op:
        body = (
            f"setp.ge.s32 %p1,%r4,%r1; @%p1 ret; mul.wide.s32 %d2,%r4,{scale}; add.s64 %d3,%d1,%d2; "
            "ld.global.u8 %h1,[%d3]; xor.b16 %h1,%h1,255; st.global.u8 [%d3],%h1;"
        )
        return {
            "ptx": kernel(folder, PARAMS, INDEX + body), "args": ["ptr x", "u32 64"], "grid": [1], "block": [64],
            "inputs": [{"name": "x", "shape": [elements], "dtype": dtype}], "output": {"name": "y", "inout": "x"},
        }  # fmt: skip

    def test_elements_of_twice_the_width(self, teeny: Teeny, tmp_path: Path) -> None:
        (message,) = said(teeny, tmp_path, self.op(tmp_path, "u16"), "buffer-dtype")
        assert (
            message == "'y' has 64 elements of u16, and the kernel goes through it by 8 bits, to the end of 32 elements"
        )
        assert said(teeny, tmp_path, self.op(tmp_path, "i32"), "buffer-dtype")

    def test_what_is_as_it_should_be(self, teeny: Teeny, tmp_path: Path) -> None:
        assert said(teeny, tmp_path, self.op(tmp_path, "u8"), "buffer-dtype") == []
        # Bytes are how anything may be copied, from end to end.
        assert said(teeny, tmp_path, self.op(tmp_path, "u16", elements=32), "buffer-dtype") == []
        # Of each element the low byte alone, as of indices that are narrowed.
        assert said(teeny, tmp_path, self.op(tmp_path, "u16", scale=2), "buffer-dtype") == []
