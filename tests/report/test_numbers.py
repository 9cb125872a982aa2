from __future__ import annotations

import math

import pytest

from teenycli.report.numbers import case, count, exact, milliseconds, number, pair, rate, shape, size, triple

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("nbytes", "shown"),
    [
        (0, "0 bytes"), (1, "1 byte"), (1023, "1,023 bytes"), (1024, "1 KiB"), (268800, "262.5 KiB"),
        (1 << 20, "1 MiB"),
        ((1 << 20) - 1, "1024 KiB"), (24 << 30, "24 GiB"), (1 << 70, "1048576 PiB"),
    ],
)  # fmt: skip
def test_size(nbytes: int, shown: str) -> None:
    assert size(nbytes) == shown


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (0.0, "0 us"), (0.00085, "0.850 us"), (0.0123, "12.3 us"), (0.999, "999 us"), (4.561, "4.56 ms"),
        (123.4, "123 ms"), (1234.5, "1.23 s"), (600_000, "600 s"),
    ],
)  # fmt: skip
def test_milliseconds(ms: float, shown: str) -> None:
    assert milliseconds(ms) == shown


def test_rate_counts_in_powers_of_ten() -> None:
    assert rate(3_000_000_000, 1000) == "3.00 GB/s"
    assert rate(1_000_000, 1000) == "1.00 MB/s"
    assert rate(4_800_000_000, 1) == "4.80 TB/s"
    assert rate(1, 0) is None


def test_numbers() -> None:
    assert number(1024) == "1024"
    assert number(1_000_000) == "1,000,000"
    assert number(0.1) == "0.1"
    assert number(-math.inf) == "-inf"
    assert exact(True) == "1"
    assert exact(0.1) == "0.1"
    assert exact(10**6) == "1000000"


def test_a_pair_is_told_apart() -> None:
    assert pair(0.25, 0.5) == ("0.25", "0.5")
    assert pair(0.1, 0.1 + 2**-50) == ("0.1", "0.1000000000000009")
    assert pair(2**60, 2**60 + 1) == (str(2**60), str(2**60 + 1))
    assert pair(math.nan, 1.0) == ("nan", "1")


def test_words() -> None:
    assert count(1, "launch", "launches") == "1 launch"
    assert count(2000, "launch", "launches") == "2,000 launches"
    assert shape((2, 3)) == "[2, 3]"
    assert shape(()) == "[]"
    assert triple((65536, 1, 1)) == "65,536 x 1 x 1"
    assert case({"B": 2, "eps": 1e-5}) == "B=2, eps=1e-05"
