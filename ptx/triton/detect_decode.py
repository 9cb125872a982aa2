# mypy: ignore-errors
"""Decodes a detector's box head: anchor distances [B, 4, A] to centre and size [B, 4, A] in pixels.

Launch: grid B * cdiv(A, BLOCK_A); one program per image and block of anchors.
"""

import triton
import triton.language as tl

SAMPLES = [
    {
        "kernel": "detect_decode",
        "signature": {
            "boxes": "*fp32",
            "anchor_x": "*fp32",
            "anchor_y": "*fp32",
            "strides": "*fp32",
            "out": "*fp32",
            "B": "i32",
            "A": "i32",
            "BLOCK_A": "constexpr",
        },
        "constexprs": {"BLOCK_A": 128},
        "options": {"num_warps": 4},
    }
]


@triton.jit
def detect_decode(boxes, anchor_x, anchor_y, strides, out, B, A, BLOCK_A: tl.constexpr):
    blocks = tl.cdiv(A, BLOCK_A)
    b = tl.program_id(0) // blocks
    a = tl.program_id(0) % blocks * BLOCK_A + tl.arange(0, BLOCK_A)
    inside = (a < A) & (b < B)

    ax = tl.load(anchor_x + a, mask=inside)
    ay = tl.load(anchor_y + a, mask=inside)
    stride = tl.load(strides + a, mask=inside)
    box = boxes + b * 4 * A + a
    x1 = ax - tl.load(box, mask=inside)
    y1 = ay - tl.load(box + A, mask=inside)
    x2 = ax + tl.load(box + 2 * A, mask=inside)
    y2 = ay + tl.load(box + 3 * A, mask=inside)

    dst = out + b * 4 * A + a
    tl.store(dst, (x1 + x2) * 0.5 * stride, mask=inside)
    tl.store(dst + A, (y1 + y2) * 0.5 * stride, mask=inside)
    tl.store(dst + 2 * A, (x2 - x1) * stride, mask=inside)
    tl.store(dst + 3 * A, (y2 - y1) * stride, mask=inside)
