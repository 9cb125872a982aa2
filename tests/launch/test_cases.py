from __future__ import annotations

from typing import Any

import pytest

from teenycli.errors import Finding, TeenyError
from teenycli.launch.cases import (
    Overrides,
    case_dims,
    cases_of,
    check_dims,
    check_overrides,
    dim_names,
    parse_overrides,
)
from tests.launch.kernels import op

pytestmark = pytest.mark.unit

SPEC = op(
    dims={"N": 64, "M": {"value": 32, "multiple_of": 16, "max": 64}, "K": {}},
    consts={"BLOCK": 128},
    scalars={"eps": 1e-5},
    inputs=[{"name": "x", "shape": ["N", "FREE"]}],
    cases=[{"N": 1, "K": 2}, {"M": 48}],
)


def test_overrides_are_read() -> None:
    read = parse_overrides(["A=100", " B = 0x10", "A=-7"], ["eps=1e-6", "n=3", "on=true", "x=-inf"])
    assert read == Overrides({"A": -7, "B": 16}, {"eps": 1e-6, "n": 3, "on": True, "x": float("-inf")})


@pytest.mark.parametrize(
    ("dims", "scalars", "where"),
    [
        (["A"], [], "--dim"), (["=3"], [], "--dim"), (["A=1.5"], [], "--dim A"), (["A="], [], "--dim A"),
        (["A=" + "9" * 5000], [], "--dim A"), ([], ["eps"], "--set"), ([], ["eps=small"], "--set eps"),
        ([], ["eps=1e99999"], "--set eps"),
    ],
)  # fmt: skip
def test_overrides_that_are_none(dims: list[str], scalars: list[str], where: str) -> None:
    with pytest.raises(TeenyError) as caught:
        parse_overrides(dims, scalars)
    assert caught.value.finding.id == "bad-option"
    assert str(caught.value.finding.where) == where


def test_names_that_dim_may_set() -> None:
    assert dim_names(SPEC) == {"N", "M", "K", "FREE"}


def unknown(overrides: Overrides) -> Finding:
    with pytest.raises(TeenyError) as caught:
        check_overrides(overrides, [SPEC])
    return caught.value.finding


def test_overrides_that_no_op_knows() -> None:
    check_overrides(Overrides({"N": 1, "FREE": 2}, {"eps": 0}), [op(), SPEC])
    assert (unknown(Overrides({"n": 1})).id, unknown(Overrides({"n": 1})).hint) == ("unknown-dim", "did you mean 'N'?")
    assert "compiled into the PTX" in (unknown(Overrides({"BLOCK": 1})).hint or "")
    assert "--set eps=" in (unknown(Overrides({"eps": 1})).hint or "")
    assert "--dim N=" in (unknown(Overrides({}, {"N": 1})).hint or "")
    assert unknown(Overrides({}, {"esp": 1})).id == "unknown-scalar"
    with pytest.raises(TeenyError):
        check_overrides(Overrides({"N": 1}), [op()])


def test_cases_are_laid_over_dims_and_overrides_over_both() -> None:
    assert case_dims(SPEC) == {"N": 64, "M": 32}
    assert case_dims(SPEC, 0) == {"N": 1, "M": 32, "K": 2}
    assert case_dims(SPEC, 1, Overrides({"N": 5, "other": 9})) == {"N": 5, "M": 48}
    for index in (2, -1):
        with pytest.raises(TeenyError, match="cases 0 to 1"):
            case_dims(SPEC, index)
    with pytest.raises(TeenyError, match="no cases"):
        case_dims(op(), 0)


def test_every_case_once() -> None:
    spec = op(dims={"N": 1}, cases=[{"N": 1}, {"N": 2}, {"N": 3}])
    assert cases_of(spec) == [{"N": 1}, {"N": 2}, {"N": 3}]
    assert cases_of(spec, Overrides({"N": 7})) == [{"N": 7}]
    assert cases_of(op()) == [{}]


def test_dims_that_only_cases_complete_are_no_case_of_their_own() -> None:
    assert cases_of(SPEC, Overrides({"FREE": 4})) == [
        {"N": 1, "M": 32, "K": 2, "FREE": 4},
        {"N": 64, "M": 48, "FREE": 4},
    ]
    assert cases_of(op(dims={"K": {}})) == [{}]


@pytest.mark.parametrize(
    ("dim", "value", "words"),
    [
        (8, 0, "must be positive"), (8, -3, "must be positive"),
        ({"multiple_of": 16}, 100, "multiple of 16"), ({"min": 4}, 3, "at least 4"), ({"max": 4}, 5, "at most 4"),
        ({"value": 100, "multiple_of": 16}, None, "multiple of 16"),
    ],
)  # fmt: skip
def test_dims_outside_what_the_kernel_takes(dim: Any, value: int | None, words: str) -> None:
    spec = op(dims={"N": dim})
    with pytest.raises(TeenyError) as caught:
        check_dims(spec, {} if value is None else {"N": value}, Overrides())
    assert caught.value.finding.id == "bad-dim"
    assert words in caught.value.finding.message
    assert str(caught.value.finding.where) == "ops.toml: op.k.dims.N"


def test_a_dim_from_the_command_line_is_placed_there() -> None:
    spec = op(dims={"N": {"value": 32, "multiple_of": 16}})
    with pytest.raises(TeenyError, match=r"--dim N: the dim 'N' is 100") as caught:
        check_dims(spec, {}, Overrides({"N": 100}))
    assert "take 112" in (caught.value.finding.hint or "")
    assert check_dims(spec, {"N": 48}, Overrides()) == {"N": 48}
