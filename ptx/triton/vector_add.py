# mypy: ignore-errors
"""out = x + y. Launch: grid cdiv(n, BLOCK)."""

import triton
import triton.language as tl

SAMPLES = [
    {
        "kernel": "vector_add",
        "signature": {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"},
        "constexprs": {"BLOCK": 1024},
        "options": {"num_warps": 4},
    }
]


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    total = tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside)
    tl.store(out + at, total, mask=inside)
