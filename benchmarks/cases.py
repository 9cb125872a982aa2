"""The kernels that the CPU device is measured with: their PTX, arguments, numpy's way to the same result, and cost.

A function per kernel makes a ``Case`` of a given size; ``KERNELS`` names them, with the size that is measured and a
small one for tests. Imports numpy and ``ptx/refs.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.timing import ROOT

Array = npt.NDArray[Any]
Triple = tuple[int, int, int]

KERNELS_PTX = "benchmarks/kernels/kernels.ptx"


def itself(result: Array) -> Array:
    """The result as it is."""
    return result


@dataclass(frozen=True)
class Case:
    """A launch and what it must give.

    ``args`` are the kernel's own, without those that Triton adds; ``output`` is the index of the one that the kernel
    writes. ``numpy`` does the same work; ``settle`` makes the kernel's output comparable with its result. ``bytes`` is
    the least that must move between memory and processor, ``operations`` the floating-point instructions, an FMA being
    one, that the threads execute for a given result.
    """

    ptx: str
    entry: str
    grid: Triple
    block: Triple
    args: Sequence[Array | int | float]
    output: int
    numpy: Callable[[], Array]
    bytes: int
    operations: Callable[[Array], float]
    settle: Callable[[Array], Array] = itself
    rtol: float = 1e-5
    atol: float = 0.0
    differing: float = 0.0

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory: Triton states them beside the PTX."""
        metadata = (ROOT / self.ptx).with_suffix(".json")
        return int(json.loads(metadata.read_text())["shared"]) if metadata.exists() else 0

    @property
    def result(self) -> Array:
        """The argument that the kernel writes, as it is before."""
        found = self.args[self.output]
        assert isinstance(found, np.ndarray)
        return found

    def check(self, output: Array, who: str) -> None:
        """Raise AssertionError when ``output`` of ``who`` is not numpy's result; a share ``differing`` may."""
        expected, found = self.numpy(), self.settle(output)
        close = np.isclose(found, expected, rtol=self.rtol, atol=self.atol)
        assert np.mean(~close) <= self.differing, f"{who}: {np.count_nonzero(~close)} of {close.size} results are wrong"


def vector_add(n: int) -> Case:
    rng = np.random.default_rng(0)
    a, b, c = rng.random(n, np.float32), rng.random(n, np.float32), np.zeros(n, np.float32)
    return Case(
        KERNELS_PTX, "vector_add", (-(-n // 256), 1, 1), (256, 1, 1), (a, b, np.zeros_like(c), n), 2,
        lambda: np.add(a, b, out=c), 12 * n, lambda _: n, rtol=0,
    )  # fmt: skip


def softmax(rows: int, columns: int) -> Case:
    x = np.random.default_rng(1).standard_normal((rows, columns)).astype(np.float32)

    def reference() -> Array:
        weights: Array = np.exp(x - x.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        return weights

    return Case(
        KERNELS_PTX, "softmax", (rows, 1, 1), (128, 1, 1), (x, np.zeros_like(x), columns), 1,
        reference, 8 * x.size, lambda _: 9 * x.size,
    )  # fmt: skip


def product(entry: str, n: int, tile: int) -> Case:
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal((n, n)).astype(np.float32) for _ in range(2))
    return Case(
        KERNELS_PTX, entry, (n // tile, n // tile, 1), (16, 16, 1), (a, b, np.zeros_like(a), n), 2,
        lambda: a @ b, 12 * n * n, lambda _: n**3, rtol=1e-3, atol=1e-3,
    )  # fmt: skip


def matmul(n: int) -> Case:
    return product("matmul", n, 16)


def sgemm(n: int) -> Case:
    return product("sgemm", n, 64)


def mandelbrot(side: int, rounds: int) -> Case:
    def reference() -> Array:
        y, x = np.mgrid[:side, :side].astype(np.float32)
        cr, ci = np.float32(-2) + np.float32(3) * x / side, np.float32(-1.5) + np.float32(3) * y / side
        zr, zi, count = np.zeros_like(cr), np.zeros_like(cr), np.zeros(cr.shape, np.int32)
        for _ in range(rounds):
            inside = zr * zr + zi * zi < 4
            count += inside
            zr, zi = (np.where(inside, v, w) for v, w in ((zr * zr - zi * zi + cr, zr), (2 * zr * zi + ci, zi)))
        return count

    return Case(
        KERNELS_PTX, "mandelbrot", (-(-side // 32), -(-side // 8), 1), (32, 8, 1),
        (np.zeros((side, side), np.int32), side, side, rounds), 0,
        reference, 4 * side * side, lambda out: 7.0 * float(out.sum()),
        differing=0.01,  # fused multiply-adds move a few points
    )  # fmt: skip


def reduction(n: int, ctas: int) -> Case:
    x = np.random.default_rng(3).random(n, np.float32)
    return Case(
        KERNELS_PTX, "reduction", (ctas, 1, 1), (256, 1, 1), (x, np.zeros(ctas, np.float32), n), 1,
        lambda: np.asarray(x.sum()), 4 * n, lambda _: n, settle=lambda out: np.asarray(out.sum()),
    )  # fmt: skip


def histogram(n: int, ctas: int) -> Case:
    data = np.random.default_rng(4).integers(0, 256, 4 * n, dtype=np.uint8)
    return Case(
        KERNELS_PTX, "histogram", (ctas, 1, 1), (256, 1, 1), (data.view(np.uint32), np.zeros(256, np.uint32), n), 1,
        lambda: np.bincount(data, minlength=256), 4 * n, lambda _: 0, rtol=0,
    )  # fmt: skip


def layer_norm(rows: int, columns: int) -> Case:
    rng = np.random.default_rng(5)
    x, w, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((rows, columns), columns, columns))
    eps = 1e-5

    def reference() -> Array:
        centred = x - x.mean(1, keepdims=True)
        scale = 1 / np.sqrt(np.square(centred).mean(1, keepdims=True) + np.float32(eps))
        result: Array = centred * scale * w + b
        return result

    return Case(
        "benchmarks/kernels/layer_norm.ptx", "layer_norm", (rows, 1, 1), (128, 1, 1),
        (x, w, b, np.zeros_like(x), columns, eps), 3,
        reference, 8 * x.size, lambda _: 5 * x.size, rtol=1e-4, atol=1e-4,
    )  # fmt: skip


def detect_decode(images: int, anchors: int) -> Case:
    rng = np.random.default_rng(6)
    boxes = rng.random((images, 4, anchors), np.float32)
    at = np.arange(anchors, dtype=np.float32)
    ax, ay, strides = at % 80 + np.float32(0.5), at // 80 + np.float32(0.5), np.full(anchors, 8, np.float32)

    def reference() -> Array:
        left, top, right, bottom = np.moveaxis(boxes, 1, 0)
        x1, y1, x2, y2 = ax - left, ay - top, ax + right, ay + bottom
        return np.stack([(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1], axis=1) * strides

    return Case(
        "ptx/triton/detect_decode.ptx", "detect_decode", (images * -(-anchors // 128), 1, 1), (128, 1, 1),
        (boxes, ax, ay, strides, np.zeros_like(boxes), images, anchors), 4,
        reference, 8 * boxes.size, lambda _: 3 * boxes.size, atol=1e-3,
    )  # fmt: skip


def sort_rows(rows: int) -> Case:
    x = np.random.default_rng(7).standard_normal((rows, 1024)).astype(np.float32)
    return Case(
        "benchmarks/kernels/sort_rows.ptx", "sort_rows", (rows, 1, 1), (128, 1, 1), (x, np.zeros_like(x)), 1,
        lambda: np.sort(x), 8 * x.size, lambda _: 0, rtol=0,
    )  # fmt: skip


def branchy(threads: int) -> Case:
    rng = np.random.default_rng(8)
    x, table = (rng.integers(0, 2**32, shape, dtype=np.uint32) for shape in (threads, (threads, 256)))
    return Case(
        "benchmarks/kernels/branchy.ptx", "branchy", (1, 1, 1), (threads, 1, 1), (x, table, np.zeros_like(x)), 2,
        lambda: np.array([branchy_thread(i, int(x[i]), table[i].tolist()) for i in range(threads)], np.uint32),
        2 * x.nbytes + table.nbytes, lambda _: 0, rtol=0,
    )  # fmt: skip


def branchy_thread(b: int, a: int, table: list[int]) -> int:
    """What one thread of branchy.cu writes."""
    for k in range(1, 39):
        if a >> k % 31 & 1:
            word = table[b & 255]
            if word > a:
                table[a & 255] = a ^ b
                b = (b * 1664525 + word) % 2**32
            else:
                a = (a + word.bit_count() * (2 * k + 1)) % 2**32
        elif b % (k + 3) == 1:
            for rounds in range(a & 7, 0, -1):
                b = (b << 3) % 2**32 ^ table[b + rounds & 255]
            a = (a - b) % 2**32
        else:
            a = (a * 22695477 + b + k) % 2**32
    return a ^ b


@dataclass(frozen=True)
class Kernel:
    """A case to measure, a small one to test, and the most that the ratio to numpy and to PoCL may be."""

    name: str
    make: Callable[..., Case]
    full: tuple[int, ...]
    small: tuple[int, ...]
    numpy_limit: float | None = None
    pocl_limit: float | None = None


KERNELS = (
    Kernel("vector add, 16M", vector_add, (1 << 24,), (1000,), 1.25, 1.2),
    Kernel("softmax, 4096 x 1024", softmax, (4096, 1024), (3, 200), None, 0.35),
    Kernel("tiled matmul, 512 cubed", matmul, (512,), (32,), None, 0.25),
    Kernel("register-tiled sgemm, 512 cubed", sgemm, (512,), (128,)),
    Kernel("mandelbrot, 1024 squared, 200 rounds", mandelbrot, (1024, 200), (40, 20), None, 0.2),
    Kernel("block reduction, 16M", reduction, (1 << 24, 512), (5000, 4), None, 1.0),
    Kernel("histogram, 16M bytes", histogram, (1 << 22, 512), (3000, 4), None, 1.0),
    Kernel("layer norm (Triton), 4096 x 1024", layer_norm, (4096, 1024), (3, 976)),
    Kernel("detect_decode (Triton), 256 x 8400", detect_decode, (256, 8400), (2, 200)),
)
