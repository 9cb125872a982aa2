# mypy: ignore-errors
"""x / sqrt(mean(x^2) + eps) * weight along rows of at most BLOCK halves, computed in float. Launch: grid rows."""

import triton
import triton.language as tl

SAMPLES = [
    {
        "kernel": "rms_norm_f16",
        "signature": {
            "x": "*fp16",
            "weight": "*fp16",
            "out": "*fp16",
            "eps": "fp32",
            "n_cols": "i32",
            "BLOCK": "constexpr",
        },
        "constexprs": {"BLOCK": 512},
        "options": {"num_warps": 4},
        "versions": ["3.2"],
    }
]


@triton.jit
def rms_norm_f16(x, weight, out, eps, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    inside = col < n_cols
    values = tl.load(x + row * n_cols + col, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(values * values, axis=0) / n_cols + eps)
    weights = tl.load(weight + col, mask=inside).to(tl.float32)
    tl.store(out + row * n_cols + col, (values * scale * weights).to(tl.float16), mask=inside)
