# mypy: ignore-errors
"""GELU in its tanh form, and its gradient. Launch: grid cdiv(n, BLOCK).

With u = sqrt(2 / pi) * (x + 0.044715 * x^3), 0.5 * (1 + tanh(u)) is sigmoid(2 * u).
"""

import triton
import triton.language as tl

OPTIONS = {"constexprs": {"BLOCK": 512}, "options": {"num_warps": 4}}
SAMPLES = [
    {
        "kernel": "gelu",
        "signature": {"x": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"},
        **OPTIONS,
    },
    {
        "kernel": "gelu_backward",
        "signature": {"grad_out": "*fp32", "x": "*fp32", "grad_x": "*fp32", "n": "i32", "BLOCK": "constexpr"},
        **OPTIONS,
    },
]


@triton.jit
def gelu(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + at, mask=inside)
    twice_u = 1.5957691216057308 * (v + 0.044715 * v * v * v)
    tl.store(out + at, v * tl.sigmoid(twice_u), mask=inside)


@triton.jit
def gelu_backward(grad_out, x, grad_x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + at, mask=inside)
    gate = tl.sigmoid(1.5957691216057308 * (v + 0.044715 * v * v * v))
    slope = gate * (1.0 - gate) * 1.5957691216057308 * (1.0 + 3.0 * 0.044715 * v * v)
    tl.store(grad_x + at, tl.load(grad_out + at, mask=inside) * (gate + v * slope), mask=inside)
