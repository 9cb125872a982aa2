"""References of the sample kernels that are too long for one expression (``reference`` in ops.toml)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def detect_decode(boxes: Array, anchor_x: Array, anchor_y: Array, strides: Array) -> Array:
    """Distances [B, 4, A] from anchors [A] to left, top, right, bottom, as centre x and y, width, height in pixels.

    ``strides`` [A] are pixels per cell.
    """
    left, top, right, bottom = np.moveaxis(boxes, 1, 0)
    x1, y1, x2, y2 = anchor_x - left, anchor_y - top, anchor_x + right, anchor_y + bottom
    return np.stack([(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1], axis=1) * strides


def conv_bn_silu(
    x: Array,
    weight: Array,
    gamma: Array,
    beta: Array,
    mean: Array,
    var: Array,
    *,
    eps: float,
    STRIDE: int,
    PADDING: int,
) -> Array:
    """Convolution of images [B, C, H, W] with weight [OC, C, K, K], batch normalisation by stored statistics, SiLU."""
    padded = np.pad(x, [(0, 0), (0, 0), (PADDING, PADDING), (PADDING, PADDING)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, weight.shape[2:], axis=(2, 3))
    product = np.einsum("bchwij,ocij->bohw", windows[:, :, ::STRIDE, ::STRIDE], weight)
    per_channel = (1, -1, 1, 1)
    scale = (gamma / np.sqrt(var + eps)).reshape(per_channel)
    normed = (product - mean.reshape(per_channel)) * scale + beta.reshape(per_channel)
    return np.asarray(normed / (1 + np.exp(-normed)))


def gelu_backward(grad_output: Array, x: Array) -> Array:
    """Gradient of ``x`` for 0.5 x (1 + tanh(u)), u = sqrt(2 / pi) (x + 0.044715 x³)."""
    scale = np.sqrt(2 / np.pi)
    tanh = np.tanh(scale * (x + 0.044715 * x**3))
    return np.asarray(grad_output * 0.5 * (1 + tanh + x * (1 - tanh**2) * scale * (1 + 3 * 0.044715 * x**2)))


def softmax_backward(grad_output: Array, x: Array) -> Array:
    """Gradient of ``x`` for softmax along rows; the Jacobian of a row is diag(y) - y yᵀ."""
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    y = weights / weights.sum(axis=1, keepdims=True)
    return np.asarray(y * (grad_output - (grad_output * y).sum(axis=1, keepdims=True)))
