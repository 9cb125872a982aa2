# mypy: ignore-errors
"""Convolution of x [B, C, H, W] with weight [OC, C, K, K], batch normalisation by stored statistics, SiLU.

Launch: grid cdiv(OW, BLOCK_OW) x OH * cdiv(OC, BLOCK_OC) x B; a program makes BLOCK_OC channels of BLOCK_OW elements of
a row. It stores whole tiles: the rows of out are out_stride elements apart, OW rounded up to a multiple of BLOCK_OW.
"""

import triton
import triton.language as tl

SAMPLES = [
    {
        "kernel": "conv_bn_silu",
        "signature": {
            **dict.fromkeys(("x", "weight", "gamma", "beta", "mean", "var", "out"), "*fp32"),
            "eps": "fp32",
            **dict.fromkeys(("C", "H", "W", "OC", "OH", "out_stride"), "i32"),
            **dict.fromkeys(("K", "STRIDE", "PADDING", "BLOCK_OC", "BLOCK_OW"), "constexpr"),
        },
        "constexprs": {"K": 3, "STRIDE": 1, "PADDING": 1, "BLOCK_OC": 8, "BLOCK_OW": 16},
        "options": {"num_warps": 4},
    }
]


@triton.jit
def conv_bn_silu(
    x, weight, gamma, beta, mean, var, out, eps, C, H, W, OC, OH, out_stride,
    K: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr, BLOCK_OC: tl.constexpr, BLOCK_OW: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(2)
    oh = tl.program_id(1) % OH
    oc = tl.program_id(1) // OH * BLOCK_OC + tl.arange(0, BLOCK_OC)
    ow = tl.program_id(0) * BLOCK_OW + tl.arange(0, BLOCK_OW)
    real = oc < OC

    total = tl.zeros([BLOCK_OC, BLOCK_OW], dtype=tl.float32)
    for c in range(C):
        for kh in tl.static_range(K):
            for kw in tl.static_range(K):
                h = oh * STRIDE + kh - PADDING
                w = ow * STRIDE + kw - PADDING
                inside = (h >= 0) & (h < H) & (w >= 0) & (w < W)
                pixels = tl.load(x + ((b * C + c) * H + h) * W + w, mask=inside, other=0.0)
                factors = tl.load(weight + ((oc * C + c) * K + kh) * K + kw, mask=real, other=0.0)
                total += factors[:, None] * pixels[None, :]

    scale = tl.load(gamma + oc, mask=real) / tl.sqrt(tl.load(var + oc, mask=real, other=1.0) + eps)
    normed = (total - tl.load(mean + oc, mask=real)[:, None]) * scale[:, None] + tl.load(beta + oc, mask=real)[:, None]
    dst = out + ((b * OC + oc) * OH + oh)[:, None] * out_stride + ow[None, :]
    tl.store(dst, normed * tl.sigmoid(normed), mask=real[:, None])
