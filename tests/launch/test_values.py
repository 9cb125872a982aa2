from __future__ import annotations

import math

import pytest

from teenycli.launch.values import parse_integer, parse_number

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-0x1F", -31),
        ("0b101", 5),
        ("1_000", 1000),
        ("007", 7),
        (" 5 ", 5),
        ("+5", 5),
        (str(2**64 - 1), 2**64 - 1),
    ],
)
def test_integers(text: str, value: int) -> None:
    assert parse_integer(text) == value
    assert parse_number(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.5", 1.5), (".5", 0.5), ("5.", 5.0), ("-1e-3", -1e-3), ("1E5", 1e5), ("true", True), ("False", False),
     ("-inf", -math.inf), ("9e999", math.inf)],
)  # fmt: skip
def test_numbers(text: str, value: float) -> None:
    got = parse_number(text)
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize("text", ["", "x", "1.5.2", "0x", "1e", "--5", "9" * 5000, "0." + "1" * 5000, "١٢", "infinity"])
def test_what_is_no_number(text: str) -> None:
    assert parse_number(text) is None


def test_nan() -> None:
    got = parse_number("nan")
    assert isinstance(got, float)
    assert math.isnan(got)
