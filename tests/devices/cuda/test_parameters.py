from __future__ import annotations

import pytest

from teenycli.devices.cuda.parameters import compare_parameters
from teenycli.errors import Finding, Place, Severity, TeenyError
from teenycli.exits import Exit
from tests.ptx.text import module_of

pytestmark = pytest.mark.unit

WHERE = Place("k.ptx", 4)
#: A tensor map first: at 48 on sm_90, at 32 before, at 0 after.
TENSOR_MAP = ".param .align 64 .b8 map[128], .param .u32 n"


def compare(table: list[tuple[int, int]], params: str, sm: int = 90) -> tuple[Finding, ...]:
    entry = module_of(f".entry k({params}) {{ ret; }}").entries[0]
    return compare_parameters(table, entry, sm, WHERE)


def failure(table: list[tuple[int, int]], params: str, sm: int = 90) -> str:
    with pytest.raises(TeenyError) as caught:
        compare(table, params, sm)
    assert caught.value.finding.id == "parameter-layout"
    assert caught.value.finding.where == WHERE
    assert caught.value.exit is Exit.FAILED
    return caught.value.finding.message


def test_agreement_is_silent() -> None:
    assert compare([(0, 8), (8, 4), (16, 8)], ".param .u64 a, .param .u32 b, .param .f64 c") == ()
    assert compare([], "") == ()


def test_offsets_are_those_of_the_device_not_of_the_target() -> None:
    assert compare([(48, 128), (176, 4)], TENSOR_MAP, 90) == ()
    assert compare([(32, 128), (160, 4)], TENSOR_MAP, 80) == ()
    message = failure([(0, 128), (128, 4)], TENSOR_MAP, 90)
    assert "parameter 0 'map' has 128 bytes at offset 0, by teeny 128 at 48" in message
    assert "parameter 1 'n' has 4 bytes at offset 128, by teeny 4 at 176" in message


def test_sizes_and_counts() -> None:
    assert "'b' has 8 bytes at offset 8, by teeny 4 at 8" in failure([(0, 8), (8, 8)], ".param .u64 a, .param .u32 b")
    assert failure([(0, 8)], ".param .u64 a, .param .u32 b").endswith("it counts 1, teeny 2")
    assert failure([(0, 8), (8, 8)], ".param .u64 a").endswith("it counts more than 1, teeny 1")


def test_an_unknown_architecture_is_compared_without_offsets_and_with_a_warning() -> None:
    (finding,) = compare([(16, 128), (144, 4)], TENSOR_MAP, 150)
    assert (finding.id, finding.severity) == ("parameter-base", Severity.WARNING)
    assert "sm_150" in finding.message
    assert "'n' has 8 bytes" in failure([(16, 128), (144, 8)], TENSOR_MAP, 150)
    assert "'n' at offset 100 lies before 144" in failure([(16, 128), (100, 4)], TENSOR_MAP, 150)
    assert compare([], "", 150) == ()
