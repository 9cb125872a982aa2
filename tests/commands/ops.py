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
    return op(f"square_{dtype}", **{
        "dtype": dtype, "inputs": [{"name": "x", "shape": ["M", "N"]}],
        "params": [{"name": "w", "shape": ["N"], "init": "random"}, {"name": "b", "shape": ["N"]}],
        "output": {"name": "y", "shape": ["M", "N"]}, "args": ["ptr x", "ptr w", "ptr b", "ptr y", "i32 M", "i32 N"],
        "grid": ["cdiv(M * N, 32)"], "dims": {"M": 3, "N": 5}, "reference": "(x * w + b) ** 2",
        **keys,
    })  # fmt: skip
