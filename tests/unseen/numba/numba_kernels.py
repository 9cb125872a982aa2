"""Kernels as users of numba-cuda write them, and in SAMPLES what each is compiled for."""

import math

from numba import boolean, cuda, float32, float64, int32, int64, types, uint8, uint32, void

THREADS = 128
BINS = 16


def swish_gate(x, gate, out, beta):
    """out = x * sigmoid(beta * gate), a thread an element."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] / (float32(1.0) + math.exp(-beta * gate[i]))


def scatter_add(src, index, dst):
    """Adds row i of src to row index[i] of dst."""
    i, j = cuda.grid(2)
    if i < src.shape[0] and j < src.shape[1]:
        cuda.atomic.add(dst, (index[i], j), src[i, j])


def embedding_bag(table, indices, offsets, out, mean):
    """Sum or mean of the table's rows in each bag; bag b holds indices[offsets[b]:offsets[b + 1]]."""
    bag = cuda.blockIdx.x
    start, stop = offsets[bag], offsets[bag + 1]
    for d in range(cuda.threadIdx.x, table.shape[1], cuda.blockDim.x):
        total = float32(0)
        for k in range(start, stop):
            total += table[indices[k], d]
        if mean and stop > start:
            total /= float32(stop - start)
        out[bag, d] = total


def log_softmax(x, out):
    """Log-softmax of each row of a matrix whose rows may lie apart."""
    partial = cuda.shared.array(THREADS, float64)
    row, t = cuda.blockIdx.x, cuda.threadIdx.x
    top = -math.inf
    for j in range(t, x.shape[1], THREADS):
        top = max(top, x[row, j])
    partial[t] = top
    cuda.syncthreads()
    step = THREADS // 2
    while step > 0:
        if t < step:
            partial[t] = max(partial[t], partial[t + step])
        cuda.syncthreads()
        step //= 2
    top = partial[0]
    cuda.syncthreads()
    total = 0.0
    for j in range(t, x.shape[1], THREADS):
        total += math.exp(x[row, j] - top)
    partial[t] = total
    cuda.syncthreads()
    step = THREADS // 2
    while step > 0:
        if t < step:
            partial[t] += partial[t + step]
        cuda.syncthreads()
        step //= 2
    norm = top + math.log(partial[0])
    for j in range(t, x.shape[1], THREADS):
        out[row, j] = x[row, j] - norm


def jacobi3d(u, f, out, h2):
    """One Jacobi sweep of the Poisson equation; the boundary is copied."""
    i, j, k = cuda.grid(3)
    nx, ny, nz = u.shape
    if i >= nx or j >= ny or k >= nz:
        return
    if i == 0 or j == 0 or k == 0 or i == nx - 1 or j == ny - 1 or k == nz - 1:
        out[i, j, k] = u[i, j, k]
        return
    around = u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k] + u[i, j, k - 1] + u[i, j, k + 1]
    out[i, j, k] = (around - h2 * f[i, j, k]) / float32(6)


def nearest_centroid(points, centroids, labels, counts):
    """The closest centroid of each point, and how many points each centroid has."""
    i = cuda.grid(1)
    if i >= points.shape[0]:
        return
    best, at = math.inf, -1
    for c in range(centroids.shape[0]):
        distance = 0.0
        for d in range(points.shape[1]):
            delta = points[i, d] - centroids[c, d]
            distance += delta * delta
        if distance < best:
            best, at = distance, c
    labels[i] = at
    cuda.atomic.add(counts, at, 1)


def private_histogram(values, lo, width, hist):
    """Histogram over equal bins; every thread counts in an array of its own first."""
    mine = cuda.local.array(BINS, uint32)
    for b in range(BINS):
        mine[b] = 0
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        b = int32(math.floor((values[i] - lo) / width))
        if 0 <= b < BINS:
            mine[b] += 1
    for b in range(BINS):
        if mine[b] != 0:
            cuda.atomic.add(hist, b, mine[b])


def mandelbrot(image, x_min, y_min, dx, dy, max_iter):
    """Escape times, as far as a byte goes."""
    row, col = cuda.grid(2)
    if row < image.shape[0] and col < image.shape[1]:
        c_re, c_im = x_min + col * dx, y_min + row * dy
        re = im = 0.0
        n = 0
        while n < max_iter and re * re + im * im <= 4.0:
            re, im = re * re - im * im + c_re, 2.0 * re * im + c_im
            n += 1
        image[row, col] = n


def csr_matvec(row_start, columns, data, x, y):
    """y = A x for a matrix in compressed rows: a warp a row."""
    lane = cuda.threadIdx.x % 32
    row = (cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) // 32
    if row < y.size:
        total = float32(0)
        for k in range(row_start[row] + lane, row_start[row + 1], 32):
            total += data[k] * x[columns[k]]
        offset = 16
        while offset > 0:
            total += cuda.shfl_down_sync(0xFFFFFFFF, total, offset)
            offset //= 2
        if lane == 0:
            y[row] = total


def masked_fill(x, mask, value):
    """x[mask] = value, in place, for a matrix stored by columns."""
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1] and mask[i, j]:
        x[i, j] = value


#: Name, function, signature, compile options.
SAMPLES = [
    ("swish_gate", swish_gate, void(float32[::1], float32[::1], float32[::1], float32), {"fastmath": True}),
    ("scatter_add", scatter_add, void(float32[:, ::1], int64[::1], float32[:, ::1]), {}),
    (
        "embedding_bag",
        embedding_bag,
        void(float32[:, ::1], int32[::1], int32[::1], float32[:, ::1], boolean),
        {"lineinfo": True},
    ),
    ("log_softmax", log_softmax, void(float64[:, :], float64[:, ::1]), {}),
    ("jacobi3d", jacobi3d, void(float32[:, :, ::1], float32[:, :, ::1], float32[:, :, ::1], float32), {}),
    ("nearest_centroid", nearest_centroid, void(float64[:, ::1], float64[:, ::1], int32[::1], int64[::1]), {}),
    ("private_histogram", private_histogram, void(float32[:], float32, float32, uint32[::1]), {}),
    (
        "mandelbrot",
        mandelbrot,
        void(uint8[:, ::1], float64, float64, float64, float64, int64),
        {"opt": False},
    ),
    ("csr_matvec", csr_matvec, void(int64[::1], int32[::1], float32[::1], float32[::1], float32[::1]), {}),
    (
        "masked_fill",
        masked_fill,
        void(types.Array(float32, 2, "F"), types.Array(boolean, 2, "F"), float32),
        {},
    ),
]
