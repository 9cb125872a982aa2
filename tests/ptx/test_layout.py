from __future__ import annotations

import pytest

from teenycli.ptx.layout import layout, layout_size
from tests.ptx.text import module_of

pytestmark = pytest.mark.unit


def offsets(params: str, sm: int) -> list[int]:
    entry = module_of(f".entry k({params}) {{ ret; }}").entries[0]
    return [slot.offset for slot in layout(entry, sm)]


def test_scalars_follow_c() -> None:
    assert offsets(".param .u8 a, .param .u64 b, .param .u16 c, .param .f32 d", 80) == [0, 8, 16, 20]


def test_a_tensor_map_is_aligned_against_the_bank_not_against_zero() -> None:
    # The bank begins at 0x160 up to sm_89, 0x210 on sm_90, 0x380 on sm_100: 32, 16 and 0 over a multiple of 64 and 128.
    tensor_map = ".param .align 64 .b8 m[128], .param .u32 n"
    assert offsets(tensor_map, 80) == [32, 160]
    assert offsets(tensor_map, 90) == [48, 176]
    assert offsets(tensor_map, 100) == [0, 128]
    assert offsets(".param .align 128 .b8 m[128]", 90) == [112]


def test_alignment_up_to_16_is_the_same_everywhere() -> None:
    params = ".param .u32 a, .param .align 16 .b8 s[24], .param .u8 b"
    assert {tuple(offsets(params, sm)) for sm in (75, 80, 90, 100, 120)} == {(0, 16, 40)}


def test_size_ends_with_the_last_parameter() -> None:
    entry = module_of(".entry k(.param .u64 a, .param .u8 b) { ret; }").entries[0]
    assert layout_size(layout(entry, 80)) == 9
    assert layout_size(()) == 0
