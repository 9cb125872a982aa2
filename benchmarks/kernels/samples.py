# mypy: ignore-errors
"""Triton kernels that the benchmarks measure with, beside those of ptx/triton. Made into PTX by regenerate.py."""

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
    {
        "kernel": "causal_attention",
        "signature": {
            "q": "*fp16",
            "k": "*fp16",
            "v": "*fp16",
            "out": "*fp16",
            "n": "i32",
            "stride": "i32",
            "scale": "fp32",
            "ROWS": "constexpr",
            "COLUMNS": "constexpr",
            "DEPTH": "constexpr",
        },
        "constexprs": {"ROWS": 128, "COLUMNS": 64, "DEPTH": 128},
        "multiples": ["stride"],
        "options": {"num_warps": 4, "num_stages": 5},
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


# One program ROWS queries of a head, against all keys up to theirs; "scale" has the factor log2(e).
@triton.jit
def causal_attention(q, k, v, out, n, stride, scale, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    first = tl.program_id(0) * ROWS
    row = first + tl.arange(0, ROWS)
    within = tl.arange(0, DEPTH)
    head = tl.program_id(1) * n * stride
    at = head + row[:, None] * stride + within[None, :]
    query = tl.load(q + at, mask=row[:, None] < n, other=0.0)
    highest = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    mixed = tl.zeros((ROWS, DEPTH), tl.float32)
    for start in range(0, tl.minimum(first + ROWS, n), COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        there = head + column[:, None] * stride + within[None, :]
        inside = column[:, None] < n
        score = tl.dot(query, tl.trans(tl.load(k + there, mask=inside, other=0.0))) * scale
        score = tl.where((column[None, :] <= row[:, None]) & (column[None, :] < n), score, -float("inf"))
        new = tl.maximum(highest, tl.max(score, 1))
        weight = tl.exp2(score - new[:, None])
        fading = tl.exp2(highest - new)
        total = total * fading + tl.sum(weight, 1)
        mixed = tl.dot(weight.to(tl.float16), tl.load(v + there, mask=inside, other=0.0), mixed * fading[:, None])
        highest = new
    tl.store(out + at, (mixed / total[:, None]).to(tl.float16), mask=row[:, None] < n)
