from __future__ import annotations

from pathlib import Path

import pytest

from tests.checks.ops import Found, found, kernel
from tests.commands.teeny import Teeny, samples

pytestmark = pytest.mark.unit

SAMPLES = samples()


class TestSamples:
    @pytest.mark.parametrize("dtype", ["f16", "bf16", "f64", "e4m3"])
    def test_typed_accesses_of_another_width_are_certain(self, teeny: Teeny, tmp_path: Path, dtype: str) -> None:
        op = {**SAMPLES["vector_add_cuda"], "dtype": dtype}
        assert found(teeny, tmp_path, op) == {("buffer-dtype", "error")}

    @pytest.mark.parametrize("dtype", ["i32", "u32", "f16", "f64", "i64"])
    def test_untyped_ones_are_judged_by_what_becomes_of_the_bits(
        self, teeny: Teeny, tmp_path: Path, dtype: str
    ) -> None:
        op = {**SAMPLES["vector_add_triton"], "dtype": dtype}
        assert found(teeny, tmp_path, op) == {("buffer-dtype", "warning")}

    def test_each_buffer_is_its_own(self, teeny: Teeny, tmp_path: Path) -> None:
        inputs = [{"name": "x", "shape": ["N"]}, {"name": "y", "shape": ["N"], "dtype": "f16"}]
        done = found(teeny, tmp_path, {**SAMPLES["vector_add_triton"], "inputs": inputs})
        assert done == {("buffer-dtype", "warning")}

    def test_halves_of_another_kind(self, teeny: Teeny, tmp_path: Path) -> None:
        assert found(teeny, tmp_path, {**SAMPLES["rms_norm_f16_triton"], "dtype": "bf16"}) == {
            ("buffer-dtype", "warning")
        }
        assert ("buffer-dtype", "warning") in found(teeny, tmp_path, {**SAMPLES["linear_f16_triton"], "dtype": "f32"})


@pytest.mark.parametrize(
    ("body", "right", "wrong"),
    [
        ("ld.global.b32 %r1,[%d1]; st.global.b32 [%d1],%r1;", "f32 i32 f16 bf16 u8 e4m3", "f64"),
        ("ld.global.v4.b32 {%r1,%r2,%r3,%r4},[%d1]; st.global.v4.b32 [%d1],{%r1,%r2,%r3,%r4};", "f16 f32 u8", "f64"),
        ("ld.global.u8 %h1,[%d1]; st.global.u8 [%d1],%h1;", "u8 bool i8 f32 f64", ""),
        ("ld.global.b32 %r1,[%d1]; add.f16x2 %r1,%r1,%r1; st.global.b32 [%d1],%r1;", "f16", "bf16 f32 i32"),
        (("ld.global.b32 %r1,[%d1]; shl.b32 %r2,%r1,16; add.f32 %r3,%r2,%r2; "
         "st.global.b32 [%d1],%r9;"), "bf16", "f16 i16"),
        (("ld.global.b32 %r1,[%d1]; and.b32 %r2,%r1,-65536; add.f32 %r3,%r2,%r2; "
         "st.global.b32 [%d1],%r9;"), "bf16", "f16"),
        (("ld.global.u16 %h1,[%d1]; mov.b32 %f1,{0,%h1}; add.f32 %f2,%f1,%f1; "
         "st.global.b32 [%d1],%r9;"), "bf16", "f16 u16"),
        (("ld.global.u16 %h1,[%d1]; cvt.u32.u16 %r1,%h1; shl.b32 %r2,%r1,16; add.f32 %r3,%r2,%r2; "
         "st.global.b32 [%d1],%r9;"), "bf16", "f16 u16"),
        (("ld.global.u32 %r1,[%d1]; shl.b32 %r2,%r1,16; add.s32 %r3,%r2,%r2; "
         "st.global.b32 [%d1],%r9;"), "i32 u32 f16", ""),
        # A bf16 in two made an f32 by zeros below it.
        (("ld.global.b32 %r1,[%d1]; mov.b32 {%h1,%h2},%r1; mov.b32 %r2,{%h3,%h1}; add.f32 %f1,%r2,%r2; "
         "st.global.b32 [%d1],%r9;"), "bf16 f16", ""),
        ("ld.global.u32 %r1,[%d1]; add.s32 %r1,%r1,1; st.global.u32 [%d1],%r1;", "i32 u32 u8 i64", "f32"),
        ("ld.global.b16 %h1,[%d1]; cvt.rn.f16x2.e4m3x2 %r1,%h1; st.global.b16 [%d1],%h1;", "e4m3 u8 i8", "e5m2 f16"),
        ("atom.global.add.f32 %f1,[%d1],%f2;", "f32", "f16 i32"),
        ("ld.global.f64 %g1,[%d1]; st.global.f64 [%d1],%g1;", "f64 f32", "i64"),
        ("ld.global.f64 %g1,[%d1]; add.f64 %g1,%g1,%g1; st.global.f64 [%d1],%g1;", "f64", "f32 i64"),
        # Floats in an order that integers have, too: by their signs, and largest by atomics.
        (("ld.global.u32 %r1,[%d1]; setp.lt.s32 %p1,%r1,0; selp.b32 %r2,-1,0x80000000,%p1; xor.b32 %r1,%r1,%r2; "
         "st.global.u32 [%d1],%r1;"), "f32 u32 i32", ""),
        (("setp.gt.s32 %p1,%r1,-1; @%p1 red.global.max.s32 [%d1],%r1; "
         "@!%p1 red.global.min.u32 [%d1],%r1;"), "f32 i32", ""),
        ("red.global.add.s32 [%d1],%r1;", "i32", "f32"),
        # A lock's zero is also the zero of floats.
        (("mov.b32 %r1,0; mov.b32 %r2,%r1; add.f32 %f1,%r2,%r2; atom.global.cas.b32 %r3,[%d1],%r1,1; "
         "st.global.b32 [%d1],0;"), "i32 u32", ""),
        (("ld.global.u8 %h1,[%d1]; ld.global.b16 %h2,[%d1+2]; add.f16 %h2,%h2,%h2; "
         "st.global.b16 [%d1+2],%h2;"), "u8", "i8"),
    ],
)  # fmt: skip
def test_bits_may_be_of_any_type_until_something_computes_with_them(
    teeny: Teeny, tmp_path: Path, body: str, right: str, wrong: str
) -> None:
    ptx = kernel(tmp_path, ".param .u64 a", f"ld.param.u64 %d1,[a]; {body}", "sm_90")

    def of(dtype: str) -> Found:
        buffers = {"inputs": [{"name": "x", "shape": [64]}], "output": {"name": "y", "inout": "x"}}
        op = {"ptx": ptx, "dtype": dtype, "args": ["ptr x"], "grid": [1], "block": [1], **buffers}
        return found(teeny, tmp_path, op)

    for dtype in right.split():
        assert of(dtype) == set(), dtype
    for dtype in wrong.split():
        assert {id for id, _ in of(dtype)} == {"buffer-dtype"}, dtype
