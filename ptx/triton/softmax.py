# mypy: ignore-errors
"""Softmax along the rows of a matrix of at most BLOCK columns. Launch: grid rows; one program per row."""

import triton
import triton.language as tl

SAMPLES = [
    {
        "kernel": "softmax",
        "signature": {
            "x": "*fp32",
            "out": "*fp32",
            "n_cols": "i32",
            "x_stride": "i32",
            "out_stride": "i32",
            "BLOCK": "constexpr",
        },
        "constexprs": {"BLOCK": 1024},
        "options": {"num_warps": 4},
    }
]


@triton.jit
def softmax(x, out, n_cols, x_stride, out_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    inside = col < n_cols
    values = tl.load(x + row * x_stride + col, mask=inside, other=-float("inf"))
    weights = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * out_stride + col, weights / tl.sum(weights, axis=0), mask=inside)
