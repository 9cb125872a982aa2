from __future__ import annotations

import math

import pytest

from teenycli.errors import TeenyError
from teenycli.ptx import constants
from teenycli.ptx.lexer import Cursor
from teenycli.ptx.model import Float, Int, Source

pytestmark = pytest.mark.unit


def value(text: str) -> Int | Float:
    cursor = Cursor(Source("t.ptx", text + ";"))
    found = constants.expression(cursor)
    assert cursor.token.text == ";"
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", 7), ("-7", -7), ("017", 15), ("0x10", 16), ("0b11", 3), ("~0", -1), ("!5", 0), ("!0", 1),
        ("1+2*3", 7), ("(1+2)*3", 9), ("7/2", 3), ("-7/2", -3), ("-7 % 3", -1), ("1<<4|1", 17), ("6&3^1", 3),
        ("1<2 && 3>=3", 1), ("1==2 || 0", 0), ("5>3 ? 10 : 20", 10), ("0 ? 1 : 0 ? 2 : 3", 3), ("WARP_SZ*2", 64),
        ("(.s64)-1", -1), ("0x8000000000000000", 2**63), ("-1 >> 1", -1), ("-8U / 2", (2**64 - 8) // 2),
        ("0xFFFFFFFFFFFFFFFF + 1", 0), ("1 << 64", 0), ("9223372036854775807 + 1", -(2**63)), ("(.u64)-1", 2**64 - 1),
    ],
)  # fmt: skip
def test_integer_expressions_follow_c_at_64_bits(text: str, expected: int) -> None:
    found = value(text)
    assert isinstance(found, Int)
    assert found.value == expected


def test_floats_keep_their_bits() -> None:
    assert value("0f3F800000") == Float(0x3F800000, 32)
    assert value("-0f3F800000") == Float(0xBF800000, 32)
    assert value("0d4000000000000000") == Float(0x4000000000000000, 64)
    assert value("1.5+2.0") == constants.double(3.5)


def test_float_division_by_zero_is_ieee() -> None:
    assert constants.float_value(value("1.0/0.0")) == math.inf
    assert math.isnan(constants.float_value(value("0.0/0.0")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1/0", "division by zero"), ("1 % 0", "division by zero"), ("~1.5", "needs an integer"),
        ("1.5<<1", "needs integers"), ("99999999999999999999", "does not fit 64 bits"), ("9" * 5000, "5000 digits"),
        ("(1", "expected ')'"), ("1+", "expected a constant"), ("(" * 500 + "1", "nested over"),
        ("-" * 5000 + "1", "nested over"), ("(.f32)1", "unknown cast"), ("(.s64)(1.0/0.0)", "has no value"),
    ],
)  # fmt: skip
def test_bad_expressions_are_named(text: str, message: str) -> None:
    with pytest.raises(TeenyError, match=r"t\.ptx:1:") as caught:
        value(text)
    assert message in str(caught.value)
