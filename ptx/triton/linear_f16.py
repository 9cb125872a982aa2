# mypy: ignore-errors
"""y = x w^T + b in half precision on tensor cores, sums in float; x [M, K], w [N, K], b [N], K a multiple of 16.

Launch: grid cdiv(M, BLOCK_M) x cdiv(N, BLOCK_N). The rows of y are y_stride elements apart, a multiple of 16.
"""

import triton
import triton.language as tl

SAMPLES = [
    {
        "kernel": "linear_f16",
        "signature": {
            **dict.fromkeys(("x", "w", "b", "y"), "*fp16"),
            **dict.fromkeys(("M", "N", "K", "y_stride"), "i32"),
            **dict.fromkeys(("BLOCK_M", "BLOCK_N", "BLOCK_K"), "constexpr"),
        },
        "constexprs": {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32},
        "options": {"num_warps": 4, "num_stages": 2},
        "multiples": ["K", "y_stride"],
    }
]


@triton.jit
def linear_f16(
    x, w, b, y, M, N, K, y_stride, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):  # fmt: skip
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for first in range(0, K, BLOCK_K):
        k = first + tl.arange(0, BLOCK_K)
        x_tile = tl.load(x + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        w_tile = tl.load(w + n[None, :] * K + k[:, None], mask=(n < N)[None, :] & (k < K)[:, None], other=0.0)
        total = tl.dot(x_tile, w_tile, total)
    total += tl.load(b + n, mask=n < N)[None, :].to(tl.float32)
    inside = (m < M)[:, None] & (n < N)[None, :]
    tl.store(y + m[:, None] * y_stride + n[None, :], total.to(tl.float16), mask=inside)
