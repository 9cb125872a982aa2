from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest

from teenycli.dtypes import DTYPES
from teenycli.errors import TeenyError
from teenycli.tensors.arrays import Expression, Generator, Init, fill, parse_init
from teenycli.tensors.convert import Array, Number, numpy_dtype, raw_bytes
from teenycli.tensors.files import FileRef

pytestmark = pytest.mark.unit

HERE = Path()
FLOATS = ["f16", "bf16", "f32", "f64", "e4m3", "e5m2"]
INTEGERS = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]


def made(init: Init | str, name: str = "f32", shape: tuple[int, ...] = (4,), buffer: str = "x", seed: int = 0) -> Array:
    return fill(init, DTYPES[name], shape, buffer, seed, HERE)


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("zeros", Generator.ZEROS),
        (" random ", Generator.RANDOM),
        ("poison", Generator.POISON),
        (8, 8),
        (0.5, 0.5),
        ("8", 8),
        ("-1", -1),
        ("0x7f", 127),
        ("1_000", 1000),
        ("1e-5", 1e-5),
        ("-inf", float("-inf")),
        ("a.npy", FileRef("a.npy")),
        ("@a.npy", FileRef("a.npy")),
        ("dir/a.npz:x", FileRef("dir/a.npz", "x")),
        ("C:\\w\\a.npz:layer:0", FileRef("C:\\w\\a.npz", "layer:0")),
        ("model.safetensors:fc1.weight", FileRef("model.safetensors", "fc1.weight")),
        ("a.npy.bin", FileRef("a.npy.bin")),
        ("arange(A) * 0.5", Expression("arange(A) * 0.5")),
        ("zeroes", Expression("zeroes")),
    ],
)
def test_parse_init(text: str | Number, parsed: Init) -> None:
    assert parse_init(text) == parsed
    assert type(parse_init(text)) is type(parsed)


def test_an_at_sign_before_no_known_file_is_an_error() -> None:
    with pytest.raises(TeenyError, match=r"'weights\.pt' ends in '\.pt'") as caught:
        parse_init("@weights.pt")
    assert caught.value.finding.id == "unknown-file-type"
    assert ".npz" in str(caught.value.finding.hint)


class TestGenerators:
    @pytest.mark.parametrize("name", DTYPES)
    def test_zeros_and_poison_are_bytes(self, name: str) -> None:
        assert set(raw_bytes(made("zeros", name)).tolist()) == {0}
        assert set(raw_bytes(made("poison", name)).tolist()) == {0xFF}

    @pytest.mark.parametrize("name", [n for n in DTYPES if n != "ptr"])
    def test_ones(self, name: str) -> None:
        assert made("ones", name, (2, 3)).astype(float).tolist() == [[1.0] * 3] * 2

    def test_arange_counts_in_c_order(self) -> None:
        assert made("arange", "i32", (2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]
        assert made("arange", "bf16", (3,)).astype(float).tolist() == [0, 1, 2]

    @pytest.mark.parametrize(("name", "count"), [("i8", 129), ("u8", 257), ("bool", 3), ("f16", 65506), ("e4m3", 450)])
    def test_arange_that_does_not_fit_is_refused(self, name: str, count: int) -> None:
        with pytest.raises(TeenyError, match=f"ends at {count - 1}, which {name} cannot hold"):
            made("arange", name, (count,))
        made("arange", name, (count - 1,))

    @pytest.mark.parametrize("name", ["f32", "f64"])
    def test_random_floats_are_those_of_the_documented_generator(self, name: str) -> None:
        # More than one chunk: drawn by pieces, the numbers are those of one draw.
        count = 200_000
        rng = np.random.default_rng([7, zlib.crc32(b"weights")])
        expected = rng.uniform(-1, 1, count).astype(numpy_dtype(DTYPES[name]))
        assert np.array_equal(made("random", name, (count,), "weights", 7), expected)

    @pytest.mark.parametrize("name", INTEGERS)
    def test_random_integers_are_those_of_the_documented_generator(self, name: str) -> None:
        count = 200_000
        expected = np.random.default_rng([0, zlib.crc32(b"ids")]).integers(0, 100, count)
        assert np.array_equal(made("random", name, (count,), "ids"), expected)

    @pytest.mark.parametrize("name", FLOATS)
    def test_random_floats_stay_below_one_after_rounding(self, name: str) -> None:
        values = made("random", name, (100_000,)).astype(float)
        assert values.min() >= -1
        assert values.max() < 1
        assert -0.05 < values.mean() < 0.05

    def test_random_bools_are_both(self) -> None:
        values = made("random", "bool", (1000,))
        assert set(raw_bytes(values).tolist()) == {0, 1}

    def test_random_depends_on_name_and_seed(self) -> None:
        assert not np.array_equal(made("random"), made("random", buffer="y"))
        assert not np.array_equal(made("random"), made("random", seed=1))
        assert np.array_equal(made("random"), made("random"))

    def test_any_name_has_numbers_of_its_own(self) -> None:
        assert made("random", buffer="\udc80").shape == (4,)

    def test_a_negative_seed_is_an_error(self) -> None:
        with pytest.raises(TeenyError, match="the seed is -1"):
            made("random", seed=-1)

    @pytest.mark.parametrize("init", ["random", "arange", "ones"])
    def test_pointers_are_not_made_up(self, init: str) -> None:
        with pytest.raises(TeenyError) as caught:
            made(init, "ptr")
        assert caught.value.finding.id == "pointer-init"

    @pytest.mark.parametrize("init", list(Generator))
    def test_an_empty_buffer_is_empty(self, init: Generator) -> None:
        assert made(init, "f32", (0, 5)).shape == (0, 5)

    @pytest.mark.parametrize("init", list(Generator))
    def test_a_single_element_has_no_dimensions(self, init: Generator) -> None:
        assert made(init, "bf16", ()).shape == ()


class TestNumbers:
    def test_a_float_is_rounded(self) -> None:
        assert made(0.1, "f32").tolist() == [np.float32(0.1)] * 4

    def test_an_integer_fills_a_float_buffer(self) -> None:
        assert made(8, "bf16").astype(float).tolist() == [8.0] * 4

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), "-inf"])
    def test_special_values(self, value: str | float) -> None:
        assert np.array_equal(made(value), [float(value)] * 4, equal_nan=True)

    @pytest.mark.parametrize(
        ("value", "name"),
        [
            (256, "u8"), (-1, "u32"), (0.5, "i32"), ("nan", "i32"), ("inf", "u8"), (2, "bool"), (2**64, "u64"),
            (1e300, "f32"), (70000, "f16"), (449 + 16, "e4m3"), ("inf", "e4m3"), (10**400, "f64"),
        ],
    )  # fmt: skip
    def test_what_does_not_fit_is_an_error_with_both_sides(self, value: Number | str, name: str) -> None:
        with pytest.raises(TeenyError, match=f"which {name} cannot hold: it takes") as caught:
            made(value, name)
        assert caught.value.finding.id == "value-out-of-range"

    def test_what_would_vanish_is_an_error(self) -> None:
        with pytest.raises(TeenyError, match="the value is 1e-50, which f32 would round to 0"):
            made(1e-50)

    def test_the_edges_fit(self) -> None:
        assert made(2**64 - 1, "u64").tolist() == [2**64 - 1] * 4
        assert made(-128.0, "i8").tolist() == [-128] * 4
        assert made("448", "e4m3").astype(float).tolist() == [448] * 4


class TestExpressions:
    def test_an_expression_sees_the_names(self) -> None:
        out = fill("arange(A) * 0.5", DTYPES["f16"], (3,), "x", 0, HERE, {"A": 3})
        assert out.tolist() == [0, 0.5, 1]

    def test_a_single_number_fills_the_buffer(self) -> None:
        assert fill("A // 2", DTYPES["i32"], (2,), "x", 0, HERE, {"A": 7}).tolist() == [3, 3]
        assert fill("sqrt(A)", DTYPES["f32"], (2,), "x", 0, HERE, {"A": 9}).tolist() == [3, 3]

    def test_another_shape_is_an_error_even_where_it_broadcasts(self) -> None:
        with pytest.raises(TeenyError, match=r"its shape is \[3\], not \[2, 3\]") as caught:
            fill("arange(3)", DTYPES["f32"], (2, 3), "x", 0, HERE)
        assert caught.value.finding.id == "array-shape"

    def test_values_must_survive(self) -> None:
        with pytest.raises(TeenyError, match=r"init 'arange\(3\) / 2': element \[1\] is 0\.5, which i32"):
            fill("arange(3) / 2", DTYPES["i32"], (3,), "x", 0, HERE)

    def test_a_misspelt_generator_is_recognised(self) -> None:
        with pytest.raises(TeenyError, match="unknown name 'zeroes'") as caught:
            made("zeroes")
        assert caught.value.finding.hint == "did you mean 'zeros'?"

    def test_several_values_are_no_initialiser(self) -> None:
        with pytest.raises(TeenyError, match="it gives 2 values"):
            made("1, 2")


def test_more_than_the_machine_holds_is_refused_before_it_is_tried() -> None:
    with pytest.raises(TeenyError, match=r"buffer 'x', f64\[1000000, 1000000000\], takes 8,000,000,000,000,000 bytes"):
        made("zeros", "f64", (10**6, 10**9))


def test_a_file_is_relative_to_the_folder_and_converted(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([1.0, 2.0]))
    assert fill("@a.npy", DTYPES["i16"], (2,), "x", 0, tmp_path).tolist() == [1, 2]
    with pytest.raises(TeenyError, match=r"a\.npy: its shape is \[2\], not \[3\]"):
        fill("a.npy", DTYPES["i16"], (3,), "x", 0, tmp_path)
