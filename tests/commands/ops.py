"""Ops for the tests of the commands: several launches, row strides, params, backward."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PTX = str(Path(__file__).parent / "kernels" / "gradients.ptx")
Op = dict[str, Any]


def op(entry: str, **keys: Any) -> Op:
    return {"ptx": PTX, "entry": entry, "block": [32], **keys}


def cat(**keys: Any) -> Op:
    """Three inputs of different channel counts, side by side: a launch each."""
    widths = {"a": 3, "b": 1, "c": 5}
    return op("cat", **{
        "inputs": [{"name": name, "shape": ["B", width, "W"]} for name, width in widths.items()],
        "output": {"name": "y", "shape": ["B", "sum(x.shape[1] for x in inputs)", "W"]},
        "args": ["ptr inputs[i]", "ptr y", "i32 sum(inputs[k].shape[1] for k in range(i)) * W",
                 "i32 inputs[i].shape[1] * W", "i32 y.shape[1] * W", "i32 inputs[i].size"],
        "grid": ["cdiv(inputs[i].size, 32)"], "launches": "len(inputs)", "dims": {"B": 2, "W": 7},
        "reference": "concatenate((a, b, c), 1)", "cases": [{"B": 1, "W": 1}],
        "backward": {
            "entry": "cat_backward", "block": [32], "grid": ["cdiv(inputs[i].size, 32)"], "launches": "len(inputs)",
            "args": ["ptr grad_output", "ptr grad_inputs[i]", "i32 sum(inputs[k].shape[1] for k in range(i)) * W",
                     "i32 inputs[i].shape[1] * W", "i32 y.shape[1] * W", "i32 inputs[i].size"],
            "reference": "(grad_output[:, :3], grad_output[:, 3:4], grad_output[:, 4:])",
        },
        **keys,
    })  # fmt: skip


def twice(**output: Any) -> Op:
    """Rows that lie apart; what is between them is written too."""
    return op(
        "twice", inputs=[{"name": "x", "shape": ["R", "C"]}],
        output={"name": "y", "shape": ["R", "C"], "row_stride": "align(C, 4)", **output},
        args=["ptr x", "ptr y", "i32 C", "i32 y.row_stride", "i32 1"], grid=["R"],
        dims={"R": 3, "C": 5}, reference="2 * x",
    )  # fmt: skip


def square(dtype: str = "f32", **keys: Any) -> Op:
    """y = (x w + b)^2, two params; ``dtype`` f32 or f64."""
    grads = ["ptr grad_inputs[0]", "ptr grad_params[0]", "ptr grad_params[1]"]
    backward = {
        "entry": f"square_{dtype}_backward",
        "block": [32],
        "grid": ["cdiv(N, 32)"],
        "args": [
            "ptr x",
            "ptr w",
            "ptr b",
            "ptr grad_output",
            *grads,
            "i32 M",
            "i32 N",
            "i32 grad_output.row_stride",
            f"{dtype} scale",
        ],
        "reference": "(2 * (x * w + b) * grad_output * w, (2 * (x * w + b) * grad_output * x).sum(0), "
        "(2 * (x * w + b) * grad_output).sum(0))",
    }
    return op(f"square_{dtype}", **{
        "dtype": dtype, "inputs": [{"name": "x", "shape": ["M", "N"]}],
        "params": [{"name": "w", "shape": ["N"], "init": "random"}, {"name": "b", "shape": ["N"]}],
        "output": {"name": "y", "shape": ["M", "N"]}, "args": ["ptr x", "ptr w", "ptr b", "ptr y", "i32 M", "i32 N"],
        "grid": ["cdiv(M * N, 32)"], "dims": {"M": 3, "N": 5}, "reference": "(x * w + b) ** 2", "scalars": {"scale": 1},
        "backward": backward,
        **keys,
    })  # fmt: skip


def from_output(**keys: Any) -> Op:
    """y = x^2, whose backward reads the activation: 2 sqrt(y) gy, for x > 0."""
    args = ["ptr y", "ptr grad_output", "ptr grad_x", "i32 x.size"]
    return op("square_f32", **{
        "inputs": [{"name": "x", "shape": ["N"], "init": "arange"}], "output": {"name": "y", "shape": ["N"]},
        "params": [{"name": "one", "shape": ["N"], "init": "ones"}],
        "args": ["ptr x", "ptr one", "ptr null", "ptr y", "i32 1", "i32 N"], "grid": ["cdiv(N, 32)"],
        "dims": {"N": 40}, "reference": "x * x",
        "backward": {"entry": "from_output", "block": [32], "grid": ["cdiv(N, 32)"], "args": args,
                     "reference": "2 * sqrt(output) * grad_output"},
        **keys,
    })  # fmt: skip
