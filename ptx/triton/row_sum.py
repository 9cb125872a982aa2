# mypy: ignore-errors
"""Sum along each row of a matrix with any number of columns. Launch: grid rows; one program per row."""

import triton
import triton.language as tl

SAMPLES = [
    {
        "kernel": "row_sum",
        "signature": {"x": "*fp32", "out": "*fp32", "n_cols": "i32", "x_stride": "i32", "BLOCK": "constexpr"},
        "constexprs": {"BLOCK": 256},
        "options": {"num_warps": 2},
        "versions": ["3.4"],
    }
]


@triton.jit
def row_sum(x, out, n_cols, x_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for first in range(0, n_cols, BLOCK):
        col = first + tl.arange(0, BLOCK)
        total += tl.load(x + row * x_stride + col, mask=col < n_cols, other=0.0)
    tl.store(out + row, tl.sum(total, axis=0))
