from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teenycli.errors import TeenyError
from teenycli.expressions import Evaluator, constant, parse
from teenycli.manifest.expressions import INTEGERS, exact_integer

pytestmark = pytest.mark.unit

NAMES: dict[str, Any] = {"N": 1000, "BLOCK": 128, "eps": 0.5, "shape": (2, 3, 5), "k": 7, "in": 9}


def value(text: str) -> Any:
    return Evaluator(INTEGERS, NAMES).evaluate(parse(text))


def error(text: str) -> TeenyError:
    with pytest.raises(TeenyError) as caught:
        value(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("N", 1000), ("cdiv(N, BLOCK)", 8), ("align(N, BLOCK)", 1024), ("align(1024, BLOCK)", 1024),
        ("cdiv(0, 4)", 0), ("cdiv(-7, 4)", -1), ("-N // 3", -334), ("N % 7", 6), ("N / 8", 125), ("2 ** 40", 1 << 40),
        ("10 ** 18 + 1", 10**18 + 1), ("7 if N > 999 else 8", 7), ("7 if N < 10 or not N == 1000 else 8", 8),
        ("1 < 2 < 3", True), ("1 < 2 > 3", False), ("prod(shape)", 30), ("prod(shape[1:])", 15), ("shape[-1]", 5),
        ("len(shape)", 3), ("sum(s * s for s in shape)", 38),
        ("sum([a * b for a in shape for b in range(3) if b])", 30),
        ("max(shape)", 5), ("min(N, 3, BLOCK)", 3), ("max(s for s in shape if s < 5)", 3), ("sum(range(5))", 10),
        ("sum(range(0))", 0), ("N > 5 and BLOCK", 128), ("0x10 + 1_000", 1016), ("eps / 2", 0.25), ("1.0 / 3", 1.0 / 3),
        ("N * eps", 500.0), ("+N", 1000), ("(N,\n BLOCK)[1]", 128), ("in", 9), ("len(shape + (1, 2))", 5),
        ("True + 1", 2),
    ],
)  # fmt: skip
def test_values(text: str, expected: object) -> None:
    got = value(text)
    assert got == expected
    assert type(got) is type(expected)


def test_integers_stay_exact_beyond_doubles() -> None:
    assert value("(2 ** 53 + 1) * 3 / 3") == 2**53 + 1
    assert value("(2 ** 60 + 1) // 1") == 2**60 + 1


@pytest.mark.parametrize(
    ("text", "id", "words"),
    [
        ("N / 3", "expression-failed", "1000 / 3 is not exact"),
        ("N // 0", "expression-failed", "zero"),
        ("N / 0", "expression-failed", "zero"),
        ("cdiv(N, 0)", "expression-failed", "not positive"),
        ("cdiv(N, 0.5)", "expression-failed", "two integers"),
        ("2 ** -1", "expression-failed", "no integer"),
        ("shape[3]", "expression-failed", "3 items"),
        ("shape[eps]", "expression-failed", "no [0.5]"),
        ("shape[::0]", "expression-failed", "step"),
        ("sum(k for k in N)", "expression-failed", "N cannot be looped over"),
        ("N[0]", "expression-failed", "cannot be indexed"),
        ("shape + 1", "expression-failed", "in 'shape + 1'"),
        ("len(N)", "expression-failed", "sequence"),
        ("len(shape, shape)", "expression-failed", "len() takes 1"),
        ("max()", "expression-failed", "max() missing"),
        ("max(())", "expression-failed", "empty"),
        ("(-8.0) ** 0.5", "expression-failed", "real"),
        ("1e200 * 1e200 + 10.0 ** 400", "expression-failed", "in '"),
        ("NN", "unknown-name", "'NN'"),
        ("prd(shape)", "unknown-name", "prd"),
        ("N(1)", "unknown-name", "function 'N'"),
        ("cdiv", "expression-syntax", "call it"),
        ("shape.count", "unknown-attribute", "no .count"),
        ("N.__class__", "unknown-attribute", "no .__class__"),
        ("().__class__.__mro__", "unknown-attribute", "__class__"),
        ("shape.index(2)", "expression-syntax", "functions by name"),
        ("(lambda: 1)()", "expression-syntax", "functions by name"),
        ("lambda: 1", "expression-syntax", "a lambda"),
        ("max(shape, key=len)", "expression-syntax", "plain arguments"),
        ("max(*shape)", "expression-syntax", "starred"),
        ("(x := 3)", "expression-syntax", "assignment"),
        ("f'{N}'", "expression-syntax", "f-string"),
        ("'text'", "expression-syntax", "'text'"),
        ("1j", "expression-syntax", "1j"),
        ("{1: 2}", "expression-syntax", "a dict"),
        ("N @ N", "expression-syntax", "@"),
        ("N << 3", "expression-syntax", "<<"),
        ("~N", "expression-syntax", "~"),
        ("2 in shape", "expression-syntax", "in"),
        ("sum(a for a, b in shape)", "expression-syntax", "one name"),
        ("shape * 2", "expression-failed", "multiplied"),
        ("[0] * 1000", "expression-failed", "multiplied"),
        ("[shape, shape]", "expression-failed", "cannot hold a sequence"),
        ("[shape for k in range(2)]", "expression-failed", "cannot hold a sequence"),
    ],
)  # fmt: skip
def test_errors_name_what_is_wrong(text: str, id: str, words: str) -> None:
    caught = error(text)
    assert caught.finding.id == id
    assert words in caught.finding.message
    assert text in caught.finding.message


@pytest.mark.parametrize(
    "text",
    ["", "  ", "1 +", "a b", "a = 1", "x # comment", "\0", "(" * 300 + ")" * 300, "9" * 5000, "N + " * 2000 + "N",
     "0777", "1if", "print 1"],
)  # fmt: skip
def test_text_that_cannot_be_read(text: str) -> None:
    caught = error(text)
    assert caught.finding.id == "expression-syntax"
    assert len(caught.finding.message) < 400


@pytest.mark.parametrize(
    "text",
    [
        "9 ** 9 ** 9", "2 ** 10 ** 10", "10 ** 300 * 10 ** 300", "prod(range(1, 9999))", "range(10 ** 30)",
        "sum(range(10 ** 9))", "sum(a * b * c for a in range(9999) for b in range(9999) for c in range(9999))",
        "sum(sum(range(9999)) for a in range(9999))", "[[a for a in range(9999)] for b in range(9999)]",
        "len([a for a in range(200) for b in range(200)])", "N" + " + N" * 500, "9" * 3000, "-" * 3900 + "1",
        "not " * 900 + "N", "N" + "[0]" * 1200, "N" + ".a" * 1900, "(" * 150 + "N" + ",)" * 150,
        "range(0, -10 ** 40, -1)",
    ],
)  # fmt: skip
def test_no_text_hangs_or_eats_memory(text: str) -> None:
    start = time.monotonic()
    caught = error(text)
    assert caught.finding.id in ("expression-failed", "expression-syntax")
    assert time.monotonic() - start < 2


def test_nested_sequences_that_share_parts_are_not_compared() -> None:
    nested = "1"
    for name in "abcdefghijklmnopqr":
        nested = f"[({name}, {name}, {name}, {name}) for {name} in [{nested}]]"
    start = time.monotonic()
    assert error(f"{nested} == {nested}").finding.id == "expression-failed"
    assert time.monotonic() - start < 2


def test_depth_is_refused_when_it_is_read() -> None:
    assert value("+".join("1" * 200)) == 200
    assert "too deeply" in error("+".join("1" * 300)).finding.message


def test_loops_cannot_double_a_sequence_without_end() -> None:
    doubled = "(1, 2)"
    for name in "abcdefghijklmnopqrstuvwxyz":
        doubled = f"max([{name} + {name} for {name} in [{doubled}]])"
    start = time.monotonic()
    assert error(doubled).finding.id == "expression-failed"
    assert time.monotonic() - start < 2


def test_of_a_long_text_the_part_that_fails_is_quoted() -> None:
    assert error(" + ".join(["N"] * 100) + " + N / 3").finding.message.endswith("in 'N / 3'")
    assert value("\n  + ".join("12")) == 3
    assert error("1\n  + NN").finding.message == "unknown name 'NN', in '1 + NN'"


def test_misspelt_names_get_a_hint() -> None:
    assert error("BLOCKS * 2").finding.hint == "did you mean 'BLOCK'?"
    assert error("cdvi(N, 2)").finding.hint == "did you mean 'cdiv'?"
    assert "cdiv, align" in (error("frobnicate(1)").finding.hint or "")
    assert error("sum(itm for item in shape)").finding.hint == "did you mean 'item'?"


def test_loop_names_end_with_their_loop() -> None:
    assert value("sum(k for k in shape) + k") == 17
    assert error("sum(z for z in shape) + z").finding.id == "unknown-name"


def test_names_that_an_expression_reads() -> None:
    assert parse("cdiv(N, B) + sum(x.shape[j] for j in range(i))").names == {"N", "B", "x", "i"}
    assert parse("lambda").names == {"lambda"}


def test_a_name_may_be_worked_out_with_the_evaluator_that_asks_for_it() -> None:
    class Names(dict[str, int]):
        def __missing__(self, name: str) -> Any:
            if name == "k":
                raise KeyError(name)
            return evaluator.evaluate(parse("sum(k for k in range(3))"))

    evaluator = Evaluator(INTEGERS, Names())
    assert evaluator.evaluate(parse("[k * M for k in range(5)]")) == (0, 3, 6, 9, 12)
    with pytest.raises(TeenyError, match="unknown name 'k'"):
        evaluator.evaluate(parse("M + k"))


def test_names_are_looked_up_only_when_read() -> None:
    class Names(dict[str, int]):
        def __missing__(self, name: str) -> int:
            raise TeenyError("missing-dim", f"{name} was read")

    assert Evaluator(INTEGERS, Names(A=1)).evaluate(parse("A if A else B")) == 1
    with pytest.raises(TeenyError, match="B was read"):
        Evaluator(INTEGERS, Names(A=0)).evaluate(parse("A if A else B"))


def test_exact_integers() -> None:
    assert exact_integer(5, "x") == 5
    for bad in (5.0, True, (1,), None):
        with pytest.raises(TeenyError) as caught:
            exact_integer(bad, "x")
        assert caught.value.finding.id == "not-an-integer"


def test_constants_need_no_text() -> None:
    assert Evaluator(INTEGERS, {}).evaluate(constant(-5)) == -5
    assert constant(-5).names == frozenset()


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="Nk(),+-*/%[]:. 019<>=!if else orandsumrangefor\n_", max_size=60))
def test_any_text_gives_a_value_or_one_of_our_errors(text: str) -> None:
    try:
        value(text)
    except TeenyError as caught:
        assert caught.finding.id.startswith(("expression-", "unknown-"))  # noqa: PT017  (either end is right)
