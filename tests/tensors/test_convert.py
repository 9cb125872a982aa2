from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teenycli.dtypes import DTYPES
from teenycli.errors import TeenyError
from teenycli.tensors.convert import below_one, convert, largest, numpy_dtype, round_to, teeny_dtype, widen

pytestmark = pytest.mark.unit

FLOATS = ["f16", "bf16", "f32", "f64", "e4m3", "e5m2"]


@pytest.mark.parametrize("name", DTYPES)
def test_every_type_has_a_numpy_type_of_its_size(name: str) -> None:
    dtype = DTYPES[name]
    assert numpy_dtype(dtype).itemsize == dtype.size
    assert teeny_dtype(numpy_dtype(dtype)) == (DTYPES["u64"] if name == "ptr" else dtype)


def test_e4m3_is_the_finite_format_whose_largest_is_448() -> None:
    assert numpy_dtype(DTYPES["e4m3"]) == ml_dtypes.float8_e4m3fn
    assert largest(DTYPES["e4m3"]) == 448


@pytest.mark.parametrize(("name", "largest_"), [("f16", 65504), ("e5m2", 57344), ("f32", float(np.finfo("f4").max))])
def test_largest(name: str, largest_: float) -> None:
    assert largest(DTYPES[name]) == largest_


@pytest.mark.parametrize("name", FLOATS)
def test_nothing_lies_between_below_one_and_one(name: str) -> None:
    below = np.array(below_one(DTYPES[name])).astype(numpy_dtype(DTYPES[name]))
    assert float(below) < 1
    bits = below.view(f"u{below.itemsize}") + 1
    assert float(bits.astype(f"u{below.itemsize}").view(below.dtype)) == 1


@pytest.mark.parametrize(("name", "fraction"), [("bf16", 7), ("f16", 10), ("e4m3", 3), ("e5m2", 2)])
def test_rounding_from_double_is_done_once(name: str, fraction: int) -> None:
    # Just above the middle between 1 and its neighbour: rounding to single first would make it the middle, a tie.
    half = 2.0 ** -(fraction + 1)
    values = np.array([1 + half + 2**-40, 1 + half, 1 + half - 2**-40])
    step = 2 * half
    assert round_to(values, DTYPES[name]).astype(float).tolist() == [1 + step, 1, 1]
    assert round_to(-values, DTYPES[name]).astype(float).tolist() == [-1 - step, -1, -1]


def test_rounding_from_integers_is_done_once() -> None:
    # 2**22 is half a step of bf16 here; the 1, which a single has no room for, decides.
    values = np.array([2**30 + 2**22 + 1, 2**30 + 2**22], np.int32)
    assert round_to(values, DTYPES["bf16"]).astype(float).tolist() == [2**30 + 2**23, 2**30]


@given(st.floats(allow_nan=False), st.sampled_from(["bf16", "e5m2"]))
def test_rounding_gives_the_nearest_of_all_values(value: float, name: str) -> None:
    dtype = numpy_dtype(DTYPES[name])
    everything = widen(np.arange(2 ** (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}").view(dtype))
    finite = everything[np.isfinite(everything)]
    got = float(round_to(np.array([value]), DTYPES[name])[0])
    if np.isfinite(got):
        assert abs(got - value) == np.min(np.abs(finite - value))
    else:
        assert abs(value) > largest(DTYPES[name])


def test_a_narrowing_that_keeps_every_integer_passes() -> None:
    out = convert(np.array([[0, -128], [127, 5]], np.int64), DTYPES["i8"], "x")
    assert out.dtype == np.int8
    assert out.tolist() == [[0, -128], [127, 5]]


def test_whole_floats_become_integers() -> None:
    assert convert(np.array([0.0, -3.0, 2.0**31]), DTYPES["i64"], "x").tolist() == [0, -3, 2**31]


@pytest.mark.parametrize(
    ("values", "name", "lost"),
    [
        (np.array([1, 2, 0.5]), "i32", "element [2] is 0.5, which i32 cannot hold"),
        (np.array([np.nan]), "i32", "is nan"),
        (np.array([2.0**63]), "i64", "element [0] is 9.223372036854776e+18"),
        (
            np.array([[0, 300]]),
            "u8",
            "element [0, 1] is 300, which u8 cannot hold: it takes whole numbers from 0 to 255",
        ),
        (np.array([-1]), "u64", "element [0] is -1"),
        (np.array([2**63], np.uint64), "i64", "element [0] is 9223372036854775808"),
        (np.array([2]), "bool", "element [0] is 2, which bool cannot hold: it takes whole numbers from 0 to 1"),
        (np.array([0.5]), "bool", "element [0] is 0.5"),
        (np.array([1.0, 70000]), "f16", "element [1] is 70000.0, which f16 cannot hold: it takes up to 65504"),
        (np.array([np.inf]), "e4m3", "element [0] is inf, which e4m3 cannot hold: it takes up to 448 and NaN"),
        (np.array([500.0], np.float32), "e4m3", "element [0] is 500.0"),
        (np.array(1e300), "f32", "the value is 1e+300"),
    ],
)
def test_what_would_be_lost_is_named(values: np.ndarray[Any, Any], name: str, lost: str) -> None:
    with pytest.raises(TeenyError) as caught:
        convert(values, DTYPES[name], "w.npy")
    assert caught.value.finding.id == "value-out-of-range"
    assert caught.value.finding.message.startswith("w.npy: ")
    assert lost in caught.value.finding.message


@pytest.mark.parametrize("name", FLOATS)
def test_nan_survives_in_every_float(name: str) -> None:
    assert np.isnan(convert(np.array([np.nan]), DTYPES[name], "x").astype(float)).all()


def test_limits_of_64_bit_integers_are_exact() -> None:
    edge = np.array([2**64 - 1, 2**63], np.uint64)
    assert convert(edge, DTYPES["u64"], "x").tolist() == [2**64 - 1, 2**63]
    assert convert(np.array([-(2**63)], np.int64), DTYPES["i64"], "x").tolist() == [-(2**63)]
    assert convert(np.array([-(2.0**63)]), DTYPES["i64"], "x").tolist() == [-(2**63)]


def test_the_loss_far_behind_the_first_chunk_has_its_own_index() -> None:
    values = np.zeros((300, 1000), np.int64)
    values[299, 998] = -1
    with pytest.raises(TeenyError, match=r"element \[299, 998\] is -1"):
        convert(values, DTYPES["u8"], "x")


def test_fortran_order_and_big_endian_come_out_right() -> None:
    values = np.arange(6, dtype=">f8").reshape(2, 3).T
    out = convert(values, DTYPES["f32"], "x")
    assert out.flags.c_contiguous
    assert out.tolist() == values.tolist()


@pytest.mark.parametrize("values", [np.array([1j]), np.array(["a"]), np.array([None]), np.zeros(2, "V2")])
def test_what_holds_no_real_numbers_is_refused(values: np.ndarray[Any, Any]) -> None:
    with pytest.raises(TeenyError) as caught:
        convert(values, DTYPES["f32"], "x.npy")
    assert caught.value.finding.id == "element-type"


def test_untyped_bytes_as_numpy_saves_bf16_get_a_hint() -> None:
    with pytest.raises(TeenyError) as caught:
        convert(np.zeros(2, "V2"), DTYPES["bf16"], "x.npy")
    assert "bf16" in str(caught.value.finding.hint)
