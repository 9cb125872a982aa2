from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teenycli.dtypes import DTYPES
from teenycli.errors import TeenyError
from teenycli.tensors.compare import Comparison, Sample, compare, summarize
from teenycli.tensors.convert import numpy_dtype

pytestmark = pytest.mark.unit

NAN, INF = math.nan, math.inf


def compared(
    result: list[Any],
    reference: list[Any],
    name: str = "f32",
    rtol: float = 0,
    atol: float = 0,
    *,
    poisoned: bool = True,
) -> Comparison:
    dtype = DTYPES[name]
    got = np.array(result, numpy_dtype(dtype))
    want = np.array(reference, np.float64) if dtype.is_float else np.array(reference)
    return compare(got, want, dtype, rtol, atol, poisoned=poisoned)


class TestFloats:
    def test_equal(self) -> None:
        out = compared([1, 2.5, -3], [1, 2.5, -3])
        assert out.ok
        assert (out.count, out.mismatches, out.max_abs, out.max_rel, out.max_ulp) == (3, 0, 0, 0, 0)
        assert out.first is None
        assert out.worst is None

    def test_first_and_worst_are_told_apart(self) -> None:
        out = compared([[1, 2.5], [3, 40]], [[1, 2], [3, 4]])
        assert not out.ok
        assert out.mismatches == 2
        assert out.first == Sample((0, 1), 2.5, 2.0)
        assert out.worst == Sample((1, 1), 40.0, 4.0)
        assert out.max_abs == 36
        assert out.max_rel == 9

    def test_tolerance_is_absolute_plus_relative_of_the_reference(self) -> None:
        assert compared([101], [100], rtol=0.005, atol=0.5).ok
        assert not compared([101.5], [100], rtol=0.005, atol=0.5).ok
        assert not compared([100], [50], rtol=0.6).ok  # 0.6 of the reference, not of the result

    def test_the_rounded_reference_is_right_without_any_tolerance(self) -> None:
        out = compared([np.float32(0.1)], [0.1])
        assert out.ok
        assert out.max_abs == pytest.approx(1.49e-9, rel=0.01)
        assert out.max_ulp == 0

    def test_nan_equals_nan_and_nothing_else(self) -> None:
        assert compared([NAN], [NAN]).ok
        for got, want in ((NAN, 1.0), (1.0, NAN), (INF, NAN)):
            out = compared([0.0, got], [0.0, want], rtol=1, atol=1)
            assert not out.ok
            assert math.isnan(out.max_abs)
            assert out.worst is not None
            assert out.worst.index == (1,)

    def test_inf_equals_inf_of_its_sign_and_nothing_else(self) -> None:
        assert compared([INF, -INF], [INF, -INF]).ok
        for got, want in ((INF, -INF), (INF, 1.0), (1.0, INF)):
            out = compared([got], [want], rtol=1, atol=1e300)
            assert not out.ok
            assert out.max_abs == INF

    def test_nan_outweighs_inf_as_the_worst(self) -> None:
        out = compared([INF, NAN, 5], [0, 0, 0])
        assert math.isnan(out.max_abs)
        assert out.worst is not None
        assert out.worst.index == (1,)

    def test_overflow_of_the_type_is_right_where_the_reference_overflows_it(self) -> None:
        assert compared([INF], [1e6], "f16").ok
        assert not compared([65504], [1e6], "f16").ok
        assert compared([NAN], [1e6], "e4m3").ok

    def test_zero_in_the_reference_has_no_relative_error(self) -> None:
        assert compared([0.5, 1.5], [0, 1], atol=1).max_rel == 0.5

    @pytest.mark.parametrize(
        ("name", "step"),
        [("f16", 2**-10), ("bf16", 2**-7), ("f32", 2**-23), ("f64", 2**-52), ("e4m3", 0.125), ("e5m2", 0.25)],
    )
    def test_ulp_counts_steps_of_the_outputs_type(self, name: str, step: float) -> None:
        assert compared([1 + 3 * step], [1], name).max_ulp == 3

    def test_ulp_counts_through_zero_and_between_extremes(self) -> None:
        tiny = float(np.finfo(np.float64).smallest_subnormal)
        assert compared([tiny], [-tiny], "f64").max_ulp == 2
        assert compared([0.0], [-0.0], "f64").max_ulp == 0
        largest = float(np.finfo(np.float64).max)
        assert compared([largest], [-largest], "f64").max_ulp == 2 * 0x7FEF_FFFF_FFFF_FFFF

    @given(st.lists(st.tuples(st.floats(width=16), st.floats(width=16)), min_size=1, max_size=5))
    def test_agrees_with_a_plain_loop(self, pairs: list[tuple[float, float]]) -> None:
        got, want = map(list, zip(*pairs, strict=True))
        out = compared(got, want, "f16", 0.01, 0.1)
        wrong = 0
        for a, b in pairs:
            same = a == b or (math.isnan(a) and math.isnan(b))
            near = math.isfinite(a) and math.isfinite(b) and abs(a - b) <= 0.1 + 0.01 * abs(b)
            wrong += not (same or near)
        assert out.mismatches == wrong

    def test_an_index_beyond_the_first_chunk(self) -> None:
        result = np.zeros((70, 1000, 3), np.float32)
        result[69, 998, 1] = 1
        out = compare(result, np.zeros(result.shape), DTYPES["f32"], 0, 0.5)
        assert out.first is not None
        assert out.first.index == (69, 998, 1)

    def test_a_transposed_reference(self) -> None:
        result = np.arange(6, dtype=np.float32).reshape(3, 2)
        assert compare(result, np.arange(6.0).reshape(3, 2).T.copy().T, DTYPES["f32"], 0, 0).ok

    def test_a_single_element_and_none(self) -> None:
        out = compare(np.array(1, np.float32), np.array(2.0), DTYPES["f32"], 0, 0)
        assert out.first == Sample((), 1.0, 2.0)
        assert compare(np.zeros(0, np.float32), np.zeros(0), DTYPES["f32"], 0, 0).ok

    def test_shapes_must_agree_exactly(self) -> None:
        with pytest.raises(TeenyError, match=r"the reference's shape is \[3\], the result's \[1, 3\]"):
            compare(np.zeros((1, 3), np.float32), np.zeros(3), DTYPES["f32"], 0, 0)


class TestIntegers:
    def test_64_bits_do_not_go_through_double(self) -> None:
        for name, value in (("i64", 2**62), ("u64", 2**63), ("i64", -(2**62))):
            out = compared([value + 1], [value], name)
            assert not out.ok
            assert out.max_abs == 1
            assert type(out.max_abs) is int
            assert out.max_ulp == 1
            assert compared([value], [value], name).ok

    def test_the_widest_difference(self) -> None:
        assert compared([2**63 - 1], [-(2**63)], "i64").max_abs == 2**64 - 1
        assert compared([0], [2**64 - 1], "u64").max_abs == 2**64 - 1
        assert compared([-128], [127], "i8").max_abs == 255

    def test_a_tolerance_is_honoured_when_given(self) -> None:
        assert compared([101, 9], [100, 10], "i32", atol=1).ok
        assert compared([102, 9], [100, 10], "i32", atol=1).mismatches == 1
        assert compared([110], [100], "u8", rtol=0.1).ok

    def test_what_the_type_cannot_hold_is_an_error(self) -> None:
        with pytest.raises(TeenyError, match=r"the reference: element \[1\] is 300, which u8 cannot hold"):
            compared([0, 44], [0, 300], "u8")

    def test_a_bool_byte_that_is_neither_0_nor_1_is_wrong(self) -> None:
        result = np.array([1, 0, 2, 0xFF], np.uint8).view(np.bool_)
        out = compare(result, np.array([True, False, True, True]), DTYPES["bool"], 0, 0)
        assert out.mismatches == 2
        assert out.first == Sample((2,), 2, 1)
        assert out.unwritten == 1


class TestUnwritten:
    @pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64", "e4m3", "e5m2"])
    def test_floats_of_all_ones_were_never_written(self, name: str) -> None:
        result = np.ones(4, numpy_dtype(DTYPES[name]))
        result.view(np.uint8)[: 2 * result.itemsize] = 0xFF
        reference = np.array([NAN, 1, 1, NAN])
        out = compare(result, reference, DTYPES[name], 0, 0)
        assert out.unwritten == 2
        assert out.mismatches == 2  # NaN where 1 should be, and 1 where NaN should be
        assert compare(result, reference, DTYPES[name], 0, 0, poisoned=False).unwritten == 0

    def test_a_nan_that_the_hardware_makes_is_not_poison(self) -> None:
        result = np.array([0x7FFFFFFF, 0x7FC00000], np.uint32).view(np.float32)
        assert compare(result, np.array([NAN, NAN]), DTYPES["f32"], 0, 0).unwritten == 0

    def test_minus_one_where_it_belongs_was_written(self) -> None:
        assert compared([-1, 0], [-1, 0], "i32").unwritten == 0
        assert compared([-1, -1], [-1, 0], "i32").unwritten == 1


class TestReferenceNearZero:
    def test_an_output_of_zeros_that_would_pass_is_flagged(self) -> None:
        assert compared([1e-7, 0], [2e-6, 0], atol=1e-5).zeros_pass
        assert compared([0, 0], [0, 0]).zeros_pass
        assert compared([0, 0], [0, 0], "i32").zeros_pass

    def test_one_element_is_enough_to_tell(self) -> None:
        assert not compared([0, 1], [0, 1], atol=1e-5).zeros_pass
        assert not compared([0, NAN], [0, NAN], atol=1e-5).zeros_pass
        assert not compared([0, 1], [0, 1], "i32").zeros_pass
        assert not compared([0, INF], [0, INF], rtol=1).zeros_pass

    def test_nothing_compared_is_not_flagged(self) -> None:
        assert not compared([], [], atol=1).zeros_pass


class TestSummary:
    def test_of_floats(self) -> None:
        array = np.array([[1, -2, NAN], [INF, -INF, 4]], np.float32)
        out = summarize("y", array, DTYPES["f32"])
        assert (out.name, out.dtype, out.shape) == ("y", "f32", (2, 3))
        assert (out.min, out.max, out.mean, out.nan, out.inf) == (-2, 4, 1, 1, 2)
        assert out.sha256 == hashlib.sha256(array.tobytes()).hexdigest()

    def test_without_a_finite_element(self) -> None:
        out = summarize("y", np.full(2, NAN, np.float32), DTYPES["f32"])
        assert (out.min, out.max, out.mean, out.nan) == (None, None, None, 2)
        assert summarize("y", np.zeros(0, np.float32), DTYPES["f32"]).mean is None

    def test_of_integers_exactly(self) -> None:
        out = summarize("y", np.array([2**63 + 1, 2**64 - 1], np.uint64), DTYPES["u64"])
        assert (out.min, out.max) == (2**63 + 1, 2**64 - 1)
        assert out.unwritten == 0

    def test_bytes_are_little_endian_and_in_c_order(self) -> None:
        array = np.arange(6, dtype=">i4").reshape(2, 3).T
        expected = hashlib.sha256(np.ascontiguousarray(array).astype("<i4").tobytes()).hexdigest()
        assert summarize("y", array, DTYPES["i32"]).sha256 == expected

    def test_poison_is_counted_in_floats(self) -> None:
        array = np.zeros(100_000, np.float32)
        array.view(np.uint8)[-8:] = 0xFF
        assert summarize("y", array, DTYPES["f32"]).unwritten == 2
        assert summarize("y", array, DTYPES["f32"], poisoned=False).unwritten == 0

    def test_bools_are_bytes(self) -> None:
        out = summarize("y", np.array([True, False]), DTYPES["bool"])
        assert (out.min, out.max, out.mean) == (0, 1, 0.5)

    def test_a_sum_that_overflows_is_inf_and_no_warning(self) -> None:
        assert summarize("y", np.full(4, 1e308), DTYPES["f64"]).mean == INF
