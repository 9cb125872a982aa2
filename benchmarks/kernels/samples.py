# mypy: ignore-errors
"""Triton kernels that the CPU device is measured with, beside those of ptx/triton. Made into PTX by regenerate.py."""

import triton
import triton.language as tl

SAMPLES = [
    {
        "kernel": "layer_norm",
        "signature": {
            "x": "*fp32",
            "w": "*fp32",
            "b": "*fp32",
            "out": "*fp32",
            "n": "i32",
            "eps": "fp32",
            "BLOCK": "constexpr",
        },
        "constexprs": {"BLOCK": 1024},
        "multiples": ["n"],
        "options": {"num_warps": 4},
    },
    {
        "kernel": "sort_rows",
        "signature": {"x": "*fp32", "out": "*fp32", "BLOCK": "constexpr"},
        "constexprs": {"BLOCK": 1024},
        "options": {"num_warps": 4},
    },
]


# One program a row of n columns, a multiple of 16.
@triton.jit
def layer_norm(x, w, b, out, n, eps, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < n
    row = tl.program_id(0) * n + at
    v = tl.load(x + row, mask=inside, other=0.0)
    mean = tl.sum(v) / n
    centred = tl.where(inside, v - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred) / n + eps)
    y = centred * scale * tl.load(w + at, mask=inside) + tl.load(b + at, mask=inside)
    tl.store(out + row, y, mask=inside)


# One program a row of BLOCK columns.
@triton.jit
def sort_rows(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.sort(tl.load(x + at)))
