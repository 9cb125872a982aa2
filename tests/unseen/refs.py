"""What the kernels of unseen.toml compute, in numpy, where one expression does not say it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def bgemm(a: Array, b: Array, c: Array, *, alpha: float, beta: float, N: int, K: int) -> Array:
    """``alpha A B + beta C`` in the first N columns of c [B, M, LDC]; a is [B, M, LDA], b is [B, K, LDB]."""
    out = c.copy()
    out[:, :, :N] = alpha * (a[:, :, :K] @ b[:, :, :N]) + beta * c[:, :, :N]
    return out


def layer_norm_plain(x: Array, *, eps: float, COLS: int) -> tuple[Array, Array, Array]:
    """The first COLS of each row with mean 0 and variance 1, the means, the reciprocal standard deviations."""
    x = x[:, :COLS]
    mean = x.mean(axis=1)
    rstd = 1 / np.sqrt(x.var(axis=1) + eps)
    return (x - mean[:, None]) * rstd[:, None], mean, rstd


def layer_norm(x: Array, weight: Array, bias: Array, *, eps: float, COLS: int) -> tuple[Array, Array, Array]:
    """As ``layer_norm_plain``, then times weight plus bias [COLS]."""
    out, mean, rstd = layer_norm_plain(x, eps=eps, COLS=COLS)
    return out * weight + bias, mean, rstd


def cross_entropy(
    logits: Array, labels: Array, *, ignore_index: int, smoothing: float
) -> tuple[Array, Array, Array, Array]:
    """Gradient [B, V] and loss [B] of each row, their sum, and how many rows count."""
    log_p = logits - logits.max(axis=1, keepdims=True)
    log_p = log_p - np.log(np.exp(log_p).sum(axis=1, keepdims=True))
    counts = labels != ignore_index
    target = np.full_like(log_p, smoothing / logits.shape[1])
    rows = np.flatnonzero(counts)
    target[rows, labels[rows]] += 1 - smoothing
    losses = np.where(counts, -(target * log_p).sum(axis=1), 0)
    grad = np.where(counts[:, None], np.exp(log_p) - target, 0)
    return grad, losses, losses.sum(keepdims=True), counts.sum(keepdims=True)


def quantize_rows(x: Array, *, COLS: int) -> tuple[Array, Array]:
    """Rows as whole multiples of a 127th of their largest magnitude; in single precision, where ties are decided."""
    x = x[:, :COLS].astype(np.float32)
    top = np.abs(x).max(axis=1, keepdims=True)
    inverse = np.divide(np.float32(127), top, out=np.zeros_like(top), where=top > 0)
    return np.clip(np.rint(x * inverse), -127, 127).astype(np.int8), top[:, 0] / 127


def rope(x: Array, positions: Array, *, log2_base: float, D: int, interleaved: bool) -> Array:
    """Pairs of the first D of x [T, H, LDX], turned by angles that grow with the position."""
    pairs = np.arange(D // 2)
    first, second = (2 * pairs, 2 * pairs + 1) if interleaved else (pairs, pairs + D // 2)
    angle = positions[:, None, None] * np.exp2(-log2_base * 2 * pairs / D)
    out = x.copy()
    out[..., first] = x[..., first] * np.cos(angle) - x[..., second] * np.sin(angle)
    out[..., second] = x[..., first] * np.sin(angle) + x[..., second] * np.cos(angle)
    return out


def im2col(image: Array, *, KH: int, KW: int, PH: int, PW: int, STRIDE: int, DIL: int) -> Array:
    """The windows of an image [C, H, W] as columns [C * KH * KW, OH, OW]; rows of a window lie DIL apart."""
    padded = np.pad(image, [(0, 0), (PH, PH), (PW, PW)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, ((KH - 1) * DIL + 1, KW), axis=(1, 2))
    windows = windows[:, ::STRIDE, ::STRIDE, ::DIL]
    return windows.transpose(0, 3, 4, 1, 2).reshape(-1, *windows.shape[1:3])


def max_pool3d(x: Array, *, K: int, STRIDE: int) -> tuple[Array, Array]:
    """The maximum of each window of x [C, D, H, W], cut off at the end, and its flat index in the channel."""
    at = np.arange(x[0].size).reshape(x.shape[1:])
    starts = [range(0, size, STRIDE) for size in x.shape[1:]]
    out = np.empty((len(x), *map(len, starts)))
    indices = np.empty(out.shape, np.int64)
    for place in np.ndindex(out.shape[1:]):
        window = tuple(slice(i * STRIDE, i * STRIDE + K) for i in place)
        values = x[:, *window].reshape(len(x), -1)
        out[:, *place] = values.max(axis=1)
        indices[:, *place] = at[window].ravel()[values.argmax(axis=1)]
    return out, indices


def topk(x: Array, *, K: int) -> tuple[Array, Array]:
    """The K largest of each row in falling order, and where they are."""
    indices = np.argsort(-x, axis=1, kind="stable")[:, :K]
    return np.take_along_axis(x, indices, axis=1), indices.astype(np.int32)


def paged_attention(q: Array, keys: Array, vals: Array, tables: Array, lens: Array, *, scale: float) -> Array:
    """Attention of q [S, HEADS, HEAD] over pages [PAGES, PAGE, KV_HEADS, HEAD] that ``tables`` lists by sequence."""
    return paged_attention_alibi(q, keys, vals, tables, lens, np.zeros(q.shape[1]), scale=scale)


def paged_attention_alibi(
    q: Array, keys: Array, vals: Array, tables: Array, lens: Array, slopes: Array, *, scale: float
) -> Array:
    """As ``paged_attention``, with a penalty that falls linearly towards the last key; ``slopes`` are per head."""
    out = np.empty_like(q)
    share = q.shape[1] // keys.shape[2]
    for s, length in enumerate(lens):
        key, value = (np.repeat(np.concatenate(pages[tables[s]])[:length], share, axis=1) for pages in (keys, vals))
        scores = scale * np.einsum("hd,thd->ht", q[s], key) + slopes[:, None] * (np.arange(length) - length + 1)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        out[s] = np.einsum("ht,thd->hd", weights / weights.sum(axis=1, keepdims=True), value)
    return out


def upsample_bilinear(image: Array, *, FACTOR: int) -> Array:
    """An image [B, H, W, C] enlarged by a factor, pixels being areas and not points."""
    for axis in (1, 2):
        size = image.shape[axis]
        at = np.maximum((np.arange(size * FACTOR) + 0.5) / FACTOR - 0.5, 0)
        low = np.minimum(at.astype(int), size - 1)
        weight = (at - low).reshape([-1 if k == axis else 1 for k in range(4)])
        image = image.take(low, axis) * (1 - weight) + image.take(np.minimum(low + 1, size - 1), axis) * weight
    return image


def hadamard(data: Array, *, LOG_N: int) -> Array:
    """The orthonormal Walsh-Hadamard transform of each row, in natural order."""
    matrix = np.ones((1, 1))
    for _ in range(LOG_N):
        matrix = np.kron(np.array([[1, 1], [1, -1]]) / np.sqrt(2), matrix)
    return data @ matrix


def color_matrix(pixels: Array, *, exposure: float, lift: float, W: int) -> Array:
    """The first W pixels of each row of RGBA bytes in sepia, alpha kept."""
    rows = np.array([[0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131]])
    out = pixels.copy()
    image = pixels[:, : 4 * W].reshape(len(pixels), W, 4)
    toned = image.copy()
    toned[..., :3] = np.rint(np.clip(image[..., :3] * exposure / 255 @ rows.T + lift, 0, 1) * 255)
    out[:, : 4 * W] = toned.reshape(len(pixels), -1)
    return out


def int8_gemv(x: Array, weights: Array, scales: Array, *, x_scale: float, GROUP: int) -> Array:
    """The product of weights [ROWS, K] with x [K], each group of columns of a row times its scale."""
    terms = weights.astype(np.int64) * x
    groups = terms.reshape(len(weights), -1, GROUP).sum(axis=2)
    return np.asarray((groups * scales).sum(axis=1) * x_scale)


def adamw(
    weight: Array,
    gradient: Array,
    m: Array,
    v: Array,
    grad_scale: Array,
    *,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
    STEP: int,
) -> tuple[Array, Array, Array]:
    """The weights and both moments after one step."""
    gradient = gradient * grad_scale
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**2
    update = m / (1 - beta1**STEP) / (np.sqrt(v / (1 - beta2**STEP)) + eps)
    return weight - lr * (update + decay * weight), m, v


def scatter_add(src: Array, index: Array, dst: Array) -> Array:
    """``dst`` with each row of src added to the row that index names."""
    out = dst.copy()
    np.add.at(out, index, src)
    return out


def embedding_bag(table: Array, indices: Array, offsets: Array, *, mean: bool) -> Array:
    """Sum or mean of the rows of each bag; of an empty one zero."""
    bags = [table[indices[start:stop]] for start, stop in pairwise(offsets)]
    return np.stack([bag.sum(axis=0) / (max(len(bag), 1) if mean else 1) for bag in bags])


def jacobi3d(u: Array, f: Array, *, h2: float) -> Array:
    """One sweep over the inner points of u [X, Y, Z]."""
    out = u.copy()
    around = sum(np.roll(u, shift, axis) for axis in range(3) for shift in (1, -1))
    inner = (slice(1, -1),) * 3
    out[inner] = ((around - h2 * f) / 6)[inner]
    return out


def nearest_centroid(points: Array, centroids: Array) -> tuple[Array, Array]:
    """The closest of centroids [K, D] to each of points [N, D], and how often each is."""
    labels = ((points[:, None] - centroids) ** 2).sum(axis=2).argmin(axis=1)
    return labels.astype(np.int32), np.bincount(labels, minlength=len(centroids))


def private_histogram(samples: Array, *, lo: float, width: float, BINS: int) -> Array:
    """How many of the first column lie in each of BINS intervals from lo on."""
    bins = np.floor((samples[:, 0].astype(np.float32) - np.float32(lo)) / np.float32(width)).astype(int)
    return np.bincount(bins[(bins >= 0) & (bins < BINS)], minlength=BINS).astype(np.uint32)


def mandelbrot(*, x_min: float, y_min: float, dx: float, dy: float, H: int, W: int, LIMIT: int) -> Array:
    """Iterations until each point leaves the disk of radius 2, at most LIMIT."""
    c = (x_min + np.arange(W) * dx) + 1j * (y_min + np.arange(H) * dy)[:, None]
    z, n = np.zeros_like(c), np.zeros(c.shape, np.uint8)
    for _ in range(LIMIT):
        inside = np.abs(z) <= 2
        z = np.where(inside, z * z + c, z)
        n += inside
    return n


def csr_matvec(row_start: Array, columns: Array, data: Array, x: Array) -> Array:
    """The product of a matrix in compressed rows with x."""
    terms = data * x[columns]
    return np.array([terms[start:stop].sum() for start, stop in pairwise(row_start)])


def dropout(x: Array, *, p: float, seed: int) -> tuple[Array, Array]:
    """x where the mask holds, scaled up to keep the mean; the mask from a hash of seed and index (SplitMix64)."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(len(x), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    z ^= z >> np.uint64(31)
    mask = (z >> np.uint64(40)) * 2.0**-24 >= np.float32(p)
    return np.where(mask, x / (1 - p), 0), mask


def avg_pool2d(x: Array, *, K: int, STRIDE: int, PAD: int, count_padding: bool) -> Array:
    """Means over windows of images [B, C, H, W]; ``count_padding`` says whether zeros of the padding count."""

    def sums(values: Array) -> Array:
        padded = np.pad(values, [(0, 0), (0, 0), (PAD, PAD), (PAD, PAD)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, (K, K), axis=(2, 3))
        return np.asarray(windows[:, :, ::STRIDE, ::STRIDE].sum(axis=(4, 5)))

    return sums(x) / (K * K if count_padding else sums(np.ones_like(x)))


def rms_norm_residual(residual: Array, x: Array, weight: Array, *, eps: float, HIDDEN: int) -> tuple[Array, Array]:
    """The residual with x added to its first HIDDEN columns, and those over their root mean square, times weight."""
    added = residual.copy()
    added[:, :HIDDEN] += x
    kept = added[:, :HIDDEN]
    return added, kept / np.sqrt((kept**2).mean(axis=1, keepdims=True) + eps) * weight


def rot90_image(image: Array, *, W: int, H: int, C: int) -> Array:
    """An image of three channels in rows [H, 3 W + padding], a quarter turn to the left, with C channels."""
    turned = np.rot90(image[:, : 3 * W].reshape(H, W, 3))[:, :, :C]
    return np.pad(turned, [(0, 0), (0, 0), (0, C - turned.shape[2])], constant_values=255)


def depthwise_conv1d(x: Array, w: Array) -> tuple[Array, Array]:
    """Causal convolution of x [B, T, C] with w [C, TAPS] along time, and the last TAPS values of each channel."""
    taps = w.shape[1]
    padded = np.pad(x, [(0, 0), (taps, 0), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(padded[:, 1:], taps, axis=1)
    return np.einsum("btck,ck->btc", windows, w), padded[:, -taps:].swapaxes(1, 2)


def gather_rows(table: Array, index: Array) -> Array:
    """Rows of table [ROWS, COLS]; negative ones count from the end, those out of range are zero."""
    rows = len(table)
    index = np.where(index < 0, index + rows, index)
    found = (index >= 0) & (index < rows)
    return np.where(found[:, None], table[np.where(found, index, 0)], 0)


def local_max(x: Array, *, LOCAL: int) -> tuple[Array, Array]:
    """The running maximum within chunks of LOCAL, and how often the maximum of each chunk is in it."""
    chunks = [x[i : i + LOCAL] for i in range(0, len(x), LOCAL)]
    often = [np.count_nonzero(chunk == chunk.max()) for chunk in chunks]
    return np.concatenate([np.maximum.accumulate(chunk) for chunk in chunks]), np.array(often, np.uint32)


def interpolate(x: Array, table: Array, *, outside: float) -> Array:
    """Linear interpolation between the kernel's own knots."""
    knots = [0.0, 0.125, 0.5, 1.0, 1.75, 2.25, 3.5, 5.0, 8.0]
    return np.interp(x, knots, table, left=outside, right=outside)
