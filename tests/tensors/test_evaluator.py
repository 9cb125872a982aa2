from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teenycli.errors import Place, TeenyError
from teenycli.tensors.evaluator import Result, evaluate
from teenycli.tensors.functions import FUNCTIONS, KEYWORDS, METHODS

pytestmark = pytest.mark.unit

X = np.arange(12.0).reshape(3, 4)
W = np.linspace(-1, 1, 8).reshape(4, 2)
NAMES: dict[str, Any] = {"x": X, "w": W, "n": np.arange(5, dtype=np.int32), "A": 7, "eps": 1e-5, "inputs": [X, W]}


def value(text: str) -> Result:
    return evaluate(text, NAMES)


def refusal(text: str) -> TeenyError:
    with pytest.raises(TeenyError) as caught:
        evaluate(text, NAMES)
    return caught.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x + 1", X + 1),
        ("-x ** 2", -(X**2)),
        ("x @ w", X @ W),
        ("exp(x - x.max(axis=1, keepdims=True))", np.exp(X - X.max(axis=1, keepdims=True))),
        ("np.exp(x) / numpy.sum(np.exp(x), axis=-1, keepdims=True)", np.exp(X) / np.exp(X).sum(-1, keepdims=True)),
        ("where(x > 3, x, 0)", np.where(X > 3, X, 0)),
        ("(x > 3) & ~(x > 8)", (X > 3) & ~(X > 8)),
        ("2 < x < 8", (X > 2) & (X < 8)),
        ("x.T", X.T),
        ("x[None, :, 0:2]", X[None, :, :2]),
        ("x[..., newaxis, ::-1]", X[..., None, ::-1]),
        ("x[1:, [0, 2]]", X[1:, [0, 2]]),
        ("x.reshape(2, -1).transpose(1, 0)", X.reshape(2, -1).T),
        ("maximum(x, A)", np.maximum(X, 7)),
        ("einsum('ij,jk->ik', x, w)", np.einsum("ij,jk->ik", X, W)),
        ("stack([x, x * 2], axis=1)", np.stack([X, X * 2], axis=1)),
        ("x if A > 3 else w", X),
        ("sum(x[k] for k in range(3))", X.sum(0)),
        ("n // 2", np.arange(5, dtype=np.int32) // 2),
        ("float32(x) / 3", X.astype(np.float32) / 3),
        ("n.astype(u8)", np.arange(5, dtype=np.uint8)),
        ("zeros((2, A), dtype=i32)", np.zeros((2, 7), np.int32)),
        ("mean(x, axis=0)", X.mean(0)),
        ("clip(x, 1, A)", X.clip(1, 7)),
        ("pad(n, (1, 2), mode='constant', constant_values=9)", np.array([9, 0, 1, 2, 3, 4, 9, 9], np.int32)),
        ("cumsum(x, axis=1)[:, -1:]", X.sum(1, keepdims=True)),
        ("inputs[1] * pi", W * np.pi),
        ("1 > 2 > x", np.zeros((3, 4), np.bool_)),
        ("sum(row * k for row in x for k in range(2))", X.sum(0)),
        ("prod(row for row in x)", X.prod(0)),
        ("array([(1, 2), (3, A)])", np.array([[1, 2], [3, 7]])),
    ],
)
def test_arrays(text: str, expected: np.ndarray[Any, Any]) -> None:
    out = value(text)
    assert isinstance(out, np.ndarray)
    assert out.dtype == expected.dtype
    assert np.array_equal(out, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cdiv(A, 2) * align(5, 8)", 32),
        ("A / 2", 3.5),
        ("1 / eps", 1 / 1e-5),
        ("2 ** 100", 2**100),
        ("max(A, 3, 9)", 9),
        ("min(k * k for k in range(2, 5))", 4),
        ("sum([1, 2, A])", 10),
        ("prod(x.shape)", 12),
        ("sum(inputs[k].shape[1] for k in range(2) if k != 1)", 4),
        ("len(inputs) + x.ndim", 4),
        ("A and 0 or not A", False),
        ("3 < A <= 7", True),
        ("x.shape[:1] + (5,)", (3, 5)),
        ("[k for k in range(3)]", (0, 1, 2)),
        ("x.shape", (3, 4)),
        ("int(A / 2)", 3),
        ("prod(k for k in range(1, 6))", 120),
        ("prod([2, 0.5, A])", 7.0),
        ("inputs[n[1]].shape[0]", 4),
    ],
)
def test_numbers(text: str, expected: object) -> None:
    out = value(text)
    assert out == expected
    assert type(out) is type(expected)


def test_a_reduction_to_one_number_is_an_array_without_dimensions() -> None:
    out = value("x.sum()")
    assert isinstance(out, np.ndarray)
    assert (out.shape, float(out)) == ((), 66.0)


def test_casts_to_small_floats_round_once() -> None:
    out = evaluate("bf16(x)", {"x": np.array([1 + 2**-8 + 2**-40])})
    assert isinstance(out, np.ndarray)
    assert out.dtype == ml_dtypes.bfloat16
    assert out.tolist() == [1 + 2**-7]
    again = evaluate("x.astype(bfloat16)", {"x": np.array([1 + 2**-8 + 2**-40])})
    assert isinstance(again, np.ndarray)
    assert again.tolist() == [1 + 2**-7]


def test_a_name_of_the_op_goes_before_one_of_numpy() -> None:
    assert evaluate("e + max", {"e": 1, "max": 2}) == 3
    assert "no function" in refused("sum(3)", {"sum": 2}).finding.message


def refused(text: str, names: dict[str, Any]) -> TeenyError:
    with pytest.raises(TeenyError) as caught:
        evaluate(text, names)
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        "x.tofile('stolen')", "x.dump('stolen')", "x.__class__", "x.__array_interface__", "x.data", "x.base",
        "x.ctypes", "x.flags", "x.setflags(write=True)", "x.sort()", "x.fill(0)", "x.view(int8)", "().__class__",
        "'a'.format(x)",
        "A.real", "(1).__class__", "sum.__globals__", "exp.__self__", "inputs.append(1)", "np.save('a', x)",
        "np.lib.format", "np.load('a.npy', allow_pickle=True)", "numpy.fromfile('a')", "open('a')", "eval('1')",
        "__import__('os')", "print(1)", "vectorize(1)", "exp(x, out=x)", "add(x, 1, x)", "sum(x, 0, float32, w)",
        "clip(x, 0, 1, x)", "float32.type", "(lambda: 1)()", "[a := 1]", "f'{x}'", "{1: 2}", "{1}", "b'a'", "1j",
        "x[0] = 1", "x; x", "print", "exp", "sum(*x)", "sum(**x)", "getattr(x, 'tofile')", "x.astype('O')",
        "array([None])", "array('abc')", "zeros(2, 'O')", "'abc'", "None", "float32", "x is x", "1 in x.shape",
    ],
)  # fmt: skip
def test_what_is_not_in_the_language(text: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = X.copy()
    ids = {"unknown-attribute", "unknown-name", "expression-syntax", "expression-failed"}
    assert refusal(text).finding.id in ids
    assert np.array_equal(before, X)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        "10 ** 10 ** 10", "2 ** 2 ** 30", "1 << 10 ** 9", "9" * 4000, "[0] * 10 ** 9", "'a' * 10 ** 9",
        "sum(1 for a in range(10 ** 6) for b in range(10 ** 6))", "range(10 ** 12)", "sum(range(10 ** 9))",
        "ones(10 ** 15)", "sum(broadcast_to(0, (10 ** 9, 10 ** 9)))", "sum(zeros((10 ** 6, 10 ** 6)))", "(" * 500,
        "(" * 500 + ")" * 500, "-" * 9000 + "1", "+".join("1" * 4000), "[" * 150 + "]" * 150, "1" + ".T" * 4900,
        "x" * 20_000, "", "   ", "x +", "x \0", "\ud800",
    ],
)  # fmt: skip
def test_hostile_texts_end_at_once(text: str) -> None:
    assert refusal(text).finding.id in {
        "expression-failed", "expression-syntax", "array-too-large", "unknown-attribute", "unknown-name",
    }  # fmt: skip


NESTED = "1"
for _name in "abcdefghijklmnopqrstuvwxyz":
    NESTED = f"[({_name}, {_name}, {_name}) for {_name} in [{NESTED}]]"
DOUBLED = "[1, 2]"
for _name in "abcdefghijklmnopqrstuvwxyz":
    DOUBLED = f"[{_name} + {_name} for {_name} in [{DOUBLED}]][0]"


@pytest.mark.parametrize(
    "text",
    [
        NESTED, f"array({NESTED})", f"x[{NESTED}]", f"x.reshape({NESTED})", f"pad(x, 1, mode={NESTED})",
        f"zeros(shape={NESTED})", f"max(a for a in [{NESTED}, {NESTED}])", f"sum({NESTED})", f"[{NESTED}][0]",
        f"{NESTED} + {NESTED}", f"{NESTED} == {NESTED}", f"A if {NESTED} else 1", f"inputs[{NESTED}]", DOUBLED,
        "prod(range(1, 10 ** 6))", "prod([k for k in range(1, 10 ** 5)] + [0.5])",
        "prod(a for a in [(1, 2), 10 ** 9])", "prod(a for a in ['text', 10 ** 9])",
        "sum(sum(range(10 ** 6)) for k in range(10 ** 6))",
        "[list[:] for list in [[k for k in range(10 ** 5)]] for k in range(10 ** 5)]",
    ],
    ids=range(20),
)  # fmt: skip
def test_sequences_that_share_parts_or_grow_take_neither_time_nor_memory(text: str) -> None:
    resource = pytest.importorskip("resource")
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    assert refusal(text).finding.id == "expression-failed"
    assert time.process_time() - start < 4
    unit = 1 if sys.platform == "darwin" else 1024
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit < 200 << 20


@given(st.text(alphabet="xwAn0123.,:()[]+-*/@<>=!~&|^% sumexpforinrangeif'", max_size=40))
def test_any_text_gives_a_value_or_an_error(text: str) -> None:
    with suppress(TeenyError):
        evaluate(text, NAMES)


class TestMessages:
    def test_misspelt_names(self) -> None:
        assert refused("strids * 2", {"strides": X}).finding.hint == "did you mean 'strides'?"
        assert refusal("sqr(x)").finding.hint == "did you mean 'sqrt'?"
        assert refusal("x.summ()").finding.hint == "did you mean 'sum'?"
        assert refusal("mean(x, axsi=1)").finding.hint == "did you mean 'axis'?"

    def test_max_of_an_array_and_a_number_is_not_guessed(self) -> None:
        assert "maximum(a, b)" in refusal("max(x, 0)").finding.message
        assert "minimum(a, b)" in refusal("min(A, x)").finding.message

    def test_and_between_arrays_has_a_hint(self) -> None:
        assert "&" in str(refusal("x > 0 and x < 1").finding.hint)

    def test_numpys_own_words_and_the_text(self) -> None:
        message = refusal("x @ x").finding.message
        assert "mismatch" in message
        assert message.endswith("in 'x @ x'")

    def test_the_place_is_the_callers(self) -> None:
        where = Place("ops.toml", 12, key="op.softmax.reference")
        with pytest.raises(TeenyError) as caught:
            evaluate("exp(x) / smu(x)", {"x": X}, where)
        assert caught.value.finding.where == where
        assert refusal("smu(x)").finding.where is None

    def test_the_text_is_quoted_or_the_part_that_matters(self) -> None:
        assert refusal("1 + zz").finding.message == "unknown name 'zz', in '1 + zz'"
        assert refusal(" + ".join("1" * 200) + " + x @ x").finding.message.endswith("in 'x @ x'")
        assert refusal("exp(x)\n / zz").finding.message.endswith("in 'exp(x) / zz'")

    def test_a_comment_would_swallow_the_next_line(self) -> None:
        assert value("1 +\n 2") == 3
        assert refusal("1 # one\n + 2").finding.id == "expression-syntax"


def test_the_lists_name_nothing_that_writes_or_calls_back() -> None:
    harmful = {"save", "savez", "savetxt", "tofile", "dump", "dumps", "load", "fromfile", "memmap", "genfromtxt",
               "vectorize", "frompyfunc", "apply_along_axis", "apply_over_axes", "fromfunction", "piecewise", "put",
               "copyto", "place", "putmask", "fill_diagonal", "fill", "sort_in_place", "resize", "setflags", "view",
               "byteswap", "setfield", "itemset", "partition_in_place", "lib", "ctypeslib", "f2py"}  # fmt: skip
    assert not harmful & (FUNCTIONS.keys() | METHODS)
    assert not {"out", "like", "casting", "subok", "func"} & KEYWORDS
