from __future__ import annotations

from typing import Any

import pytest

from teenycli.errors import TeenyError
from teenycli.launch.backward import plan_backward
from teenycli.launch.build import init_of
from teenycli.launch.cases import case_dims
from teenycli.launch.plan import Address, Plan, TensorMap
from teenycli.ptx.model import Module
from tests.launch.kernels import LLVM, TRITON_POINTER, entry, module, op, param

pytestmark = pytest.mark.unit

KERNEL = module(entry("k_entry_point"), entry("k_backward_entry_point"))
FORWARD: dict[str, Any] = {
    "dims": {"N": 5}, "consts": {"T": 4}, "dtype": "f16",
    "inputs": [{"name": "x", "shape": ["align(N, T)"], "init": "ones"}, {"name": "k", "shape": ["N"], "dtype": "i32"}],
    "params": [{"name": "w", "shape": ["N"], "dtype": "f32"}],
    "output": {"name": "y", "shape": [2, 3, "N"], "row_stride": 8},
}  # fmt: skip


def backward(kernel: Module = KERNEL, forward: dict[str, Any] = FORWARD, **keys: Any) -> Plan:
    spec = op(**forward, backward={"args": [], "grid": [1], "block": [32], **keys})
    return plan_backward(spec, case_dims(spec), kernel)


def test_buffers_are_the_forwards_and_the_gradients_that_arguments_name() -> None:
    made = backward(args=["ptr grad_params[0]", "ptr grad_x + 1"])
    assert (made.op, made.entry, made.backward) == ("k.backward", "k_backward_entry_point", True)
    assert [(b.name, b.role, b.dtype.name, b.shape, init_of(b)) for b in made.buffers] == [
        ("x", "input", "f16", (8,), "random"), ("k", "input", "i32", (5,), "random"),
        ("w", "param", "f32", (5,), "zeros"), ("y", "input", "f16", (2, 3, 5), "random"),
        ("grad_output", "input", "f16", (2, 3, 5), "random"), ("grad_x", "output", "f16", (8,), "zeros"),
        ("grad_w", "output", "f32", (5,), "zeros"),
    ]  # fmt: skip
    assert [b.rows for b in made.buffers if b.name in ("y", "grad_output")] == [(6, 5, 8), (6, 5, 5)]
    assert [a.fields[0].value for a in made.launches[0].args] == [Address("grad_w"), Address("grad_x", 2)]
    assert made.launches[0].args[0].source == "op.k.backward.args[0]"


def test_an_input_written_in_place_is_the_activation() -> None:
    forward = {**FORWARD, "output": {"name": "y", "inout": "x"}}
    made = backward(forward=forward, args=["ptr output", "ptr grad_output"])
    assert [(b.name, b.output) for b in made.buffers] == [("x", None), ("k", None), ("w", None), ("grad_output", None)]
    assert made.launches[0].args[0].fields[0].value == Address("x")


def test_shapes_keep_the_forwards_consts() -> None:
    made = backward(consts={"T": 16}, args=["i32 T", "ptr grad_x"], grid=["cdiv(x.size, T)"])
    assert (made.consts, made.buffer("grad_x").shape) == ({"T": 16}, (8,))
    assert (made.launches[0].args[0].fields[0].value, made.launches[0].grid) == (16, (1, 1, 1))


def test_a_tensor_map_of_the_incoming_gradient_strides_over_its_rows() -> None:
    made = backward(
        grad_output_row_stride="align(N, 8)", args=["tensormap d", "i32 grad_output.row_stride"],
        tensormaps={"d": {"of": "grad_output", "box": [1, 2, 8]}},
    )  # fmt: skip
    of = made.launches[0].args[0].fields[0].value
    assert isinstance(of, TensorMap)
    assert (of.shape, of.strides, of.box) == ((2, 3, 5), (48, 16), (1, 2, 8))
    assert made.launches[0].args[1].fields[0].value == 8


def test_launches_have_scratch_and_an_index_of_their_own() -> None:
    text = LLVM + "// meta:num_warps=4\n// meta:global_scratch_size=16\n"
    kernel = module(entry("k", param("u64"), TRITON_POINTER), text=text)
    made = backward(kernel, args=["ptr grad_x + i"], launches=2, hidden=1)
    assert [launch.args[0].fields[0].value for launch in made.launches] == [Address("grad_x"), Address("grad_x", 2)]
    assert [b.name for b in made.buffers if b.role == "scratch"] == ["global scratch 0", "global scratch 1"]


@pytest.mark.parametrize(
    ("keys", "id", "key"),
    [
        ({"args": ["ptr grad_inputs"]}, "bad-argument", "args[0]"), ({"entry": "no"}, "unknown-entry", "entry"),
        ({"grad_output_row_stride": 0}, "bad-value", "grad_output_row_stride"),
        ({"grid": ["Q"]}, "unknown-name", "grid[0]"),
        ({"launches": 0}, "bad-value", "launches"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_placed_in_the_table(keys: dict[str, Any], id: str, key: str) -> None:
    with pytest.raises(TeenyError) as caught:
        backward(**keys)
    assert (caught.value.finding.id, str(caught.value.finding.where)) == (id, f"ops.toml: op.k.backward.{key}")


def test_a_grid_that_nobody_says_is_left_to_the_checks() -> None:
    spec = op(**FORWARD, backward={"args": [], "block": [32]})
    assert plan_backward(spec, case_dims(spec), KERNEL).launches[0].grid == (0, 0, 0)
