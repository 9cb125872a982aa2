from __future__ import annotations

from typing import Any

import pytest

from teenycli.errors import Finding, TeenyError
from teenycli.expressions import parse
from teenycli.launch.namespace import Namespace
from tests.launch.kernels import op

pytestmark = pytest.mark.unit

BUFFERS: dict[str, Any] = {
    "inputs": [{"name": "x", "shape": ["N", 3], "dtype": "f16"}, {"name": "y", "shape": []}],
    "params": [{"name": "w", "shape": ["output.shape[1]", "inputs[0].size"]}],
    "output": {"name": "out", "shape": ["x.shape[0]", "2 * x.shape[1]"]},
}
SPEC = op(**BUFFERS, dims={"N": 8, "M": {}}, consts={"BLOCK": 4}, scalars={"eps": 0.5})
NAMES = Namespace(SPEC, {"N": 8}, {"eps": 0.25}).at(0)


def value(text: str, names: Namespace = NAMES) -> Any:
    return names.value(parse(text), "grid[0]")


def error(text: str, names: Namespace = NAMES) -> Finding:
    with pytest.raises(TeenyError) as caught:
        value(text, names)
    return caught.value.finding


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("N * BLOCK", 32), ("eps", 0.25), ("i", 0), ("x.shape", (8, 3)), ("inputs[0].shape[1]", 3), ("x.size", 24),
        ("x.row_stride", 3), ("x.itemsize", 2), ("y.shape", ()), ("y.size", 1), ("y.row_stride", 1), ("y.itemsize", 4),
        ("w.shape", (6, 24)), ("params[0].size", 144), ("output.shape", (8, 6)), ("outputs[0].row_stride", 6),
        ("len(inputs)", 2), ("sum(inputs[k].shape[1] for k in range(1))", 3),
        ("sum(inputs[k].shape[1] for k in range(i))", 0), ("sum(b.size for b in inputs)", 25),
    ],
)  # fmt: skip
def test_what_expressions_see(text: str, expected: object) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 / N", 0.125),
        ("N / 3", 8 / 3),
        ("1 / sqrt(N * 2)", 0.25),
        ("N ** -1", 0.125),
        ("N // 3", 2),
        ("eps / 2", 0.125),
    ],
)
def test_what_becomes_a_float_divides_as_one(text: str, expected: float) -> None:
    assert NAMES.value(parse(text), "args[0]", real=True) == expected


@pytest.mark.parametrize(
    ("text", "buffer", "elements"),
    [("x", "x", 0), ("x + 5", "x", 5), ("5 + x", "x", 5), ("x + N * 2 + 1", "x", 17), ("x - 1", "x", -1),
     ("inputs[1] + 1", "y", 1), ("output + x.size", "out", 24), ("x if N > 4 else y", "x", 0)],
)  # fmt: skip
def test_addresses(text: str, buffer: str, elements: int) -> None:
    pointer = value(f"({text}) + 0")
    assert (pointer.buffer.name, pointer.elements) == (buffer, elements)


@pytest.mark.parametrize("text", ["x * 2", "x + y", "x + 0.5", "null + 1", "x - y", "-x", "x < y", "x.shape + x"])
def test_what_addresses_cannot_do(text: str) -> None:
    assert error(text).id == "expression-failed"


@pytest.mark.parametrize(
    ("text", "id", "hint"),
    [
        ("x.shap", "unknown-attribute", "did you mean 'shape'?"),
        ("x.dtype", "unknown-attribute", None),
        ("x._shape", "unknown-attribute", "did you mean 'shape'?"),
        ("x.__init__", "unknown-attribute", None),
        ("null.elements", "unknown-attribute", None),
        ("BLOCKS", "unknown-name", "did you mean 'BLOCK'?"),
        ("Q", "unknown-name", "a dim gets its value in the op's dims, in a case, or with --dim Q=INT"),
        ("grad_output", "unknown-name", "only the arguments of backward have it"),
    ],
)
def test_names_and_attributes_that_are_not_there(text: str, id: str, hint: str | None) -> None:
    finding = error(text)
    assert (finding.id, finding.hint) == (id, hint)
    assert str(finding.where) == "ops.toml: op.k.grid[0]"


def test_a_dim_without_a_value_is_named_where_it_is_used() -> None:
    finding = error("M + 1")
    assert finding.id == "missing-dim"
    assert "'M'" in finding.message
    assert str(finding.where) == "ops.toml: op.k.grid[0]"


def test_several_outputs_have_no_single_name() -> None:
    names = Namespace(op(outputs=[{"name": "a", "shape": [2]}, {"name": "b", "shape": [3]}]), {}, {})
    assert value("outputs[1].size", names) == 3
    assert "outputs[k]" in (error("output.size", names).hint or "")


def test_shapes_that_wait_for_one_another() -> None:
    spec = op(inputs=[{"name": "a", "shape": ["b.shape[0]"]}, {"name": "b", "shape": ["a.shape[0]"]}])
    finding = error("a.size", Namespace(spec, {}, {}))
    assert finding.id == "bad-shape"
    assert "a -> b -> a" in finding.message
    spec = op(inputs=[{"name": f"x{k}", "shape": [f"x{k + 1}.size"]} for k in range(2000)])
    assert error("x0.size", Namespace(spec, {}, {})).id == "bad-shape"


@pytest.mark.parametrize(
    ("shape", "id", "where"),
    [
        (["N", "N - 8"], "bad-shape", "[1]"), ([-1], "bad-shape", "[0]"), (["N / 2.0"], "not-an-integer", "[0]"),
        (["N > 3"], "not-an-integer", "[0]"), (["2 ** 80"], "value-out-of-range", "[0]"), ([1] * 65, "bad-shape", ""),
    ],
)  # fmt: skip
def test_shapes_are_positive_integers(shape: list[Any], id: str, where: str) -> None:
    finding = error("x.size", Namespace(op(inputs=[{"name": "x", "shape": shape}]), {"N": 8}, {}))
    assert (finding.id, str(finding.where)) == (id, f"ops.toml: op.k.inputs[0].shape{where}")
