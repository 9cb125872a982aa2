"""Kernels for numba-cuda: arrays come as seven parameters each, names are mangled with the types."""

import math

from numba import cuda, float32, float64, int32, int64, types, void

TILE = 16


def scale(x, out, alpha):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] * alpha


def tile_product(a, b, c):
    left = cuda.shared.array((TILE, TILE), float32)
    right = cuda.shared.array((TILE, TILE), float32)
    i, j = cuda.grid(2)
    total = float32(0)
    for k in range(a.shape[1] // TILE):
        left[cuda.threadIdx.x, cuda.threadIdx.y] = a[i, k * TILE + cuda.threadIdx.y]
        right[cuda.threadIdx.x, cuda.threadIdx.y] = b[k * TILE + cuda.threadIdx.x, j]
        cuda.syncthreads()
        for m in range(TILE):
            total += left[cuda.threadIdx.x, m] * right[m, cuda.threadIdx.y]
        cuda.syncthreads()
    c[i, j] = total


def count(x, bins):
    private = cuda.local.array(4, int32)
    for k in range(4):
        private[k] = 0
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        private[x[i] & 3] += 1
    for k in range(4):
        cuda.atomic.add(bins, k, private[k])


def divide(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] // y[i] + x[i] % y[i]


def distance(a, b):
    return math.sqrt(a * a + b * b) + math.sin(a)


SAMPLES = [
    ("scale", scale, void(float32[::1], float32[::1], float32), {}),
    ("tile_product", tile_product, void(float32[:, ::1], float32[:, ::1], float32[:, ::1]), {"fastmath": True}),
    ("count", count, void(int32[:], int32[:]), {}),
    ("divide", divide, void(int64[::1], int64[::1], int64[::1]), {}),
    ("complex_numbers", scale, void(types.complex64[:], types.complex64[:], types.complex64), {}),
    ("distance", distance, float64(float64, float64), {"device": True}),
]
