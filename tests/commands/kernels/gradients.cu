// Kernels for the tests of launches, row strides, params and gradients.
// nvcc -ptx -arch=sm_80 -o gradients.ptx gradients.cu

// One input of a concatenation along the middle dimension: `whole` elements a row of y, `part` of them from x.
extern "C" __global__ void cat(const float *x, float *y, int offset, int part, int whole, int count) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) y[at / part * whole + offset + at % part] = x[at];
}

extern "C" __global__ void cat_backward(const float *gy, float *gx, int offset, int part, int whole, int count) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) gx[at] = gy[at / part * whole + offset + at % part];
}

// y = 2 x, the rows of y `stride` apart; what lies between them is written too when `spill` says so.
extern "C" __global__ void twice(const float *x, float *y, int cols, int stride, int spill) {
    int row = blockIdx.x, col = threadIdx.x;
    if (col < cols) y[row * stride + col] = 2.0f * x[row * cols + col];
    else if (col < stride && spill) y[row * stride + col] = -1.0f;
}

// y = (x w + b)^2 by column.
template <typename T> __device__ void square(const T *x, const T *w, const T *b, T *y, int m, int n) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= m * n) return;
    T inner = x[at] * w[at % n] + (b ? b[at % n] : T(0));
    y[at] = inner * inner;
}

// One thread a column: no atomics, so that float64 is exact enough. `scale` is 1 in a right backward.
template <typename T>
__device__ void square_backward(const T *x, const T *w, const T *b, const T *gy, T *gx, T *gw, T *gb, int m, int n,
                                int stride, T scale) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= n) return;
    T to_w = 0, to_b = 0;
    for (int row = 0; row < m; ++row) {
        T inner = x[row * n + col] * w[col] + b[col];
        T back = T(2) * inner * gy[row * stride + col];
        gx[row * n + col] = back * w[col];
        to_w += back * x[row * n + col];
        to_b += back;
    }
    gw[col] = to_w * scale;
    gb[col] = to_b;
}

#define SQUARE(T, suffix)                                                                                              \
    extern "C" __global__ void square_##suffix(const T *x, const T *w, const T *b, T *y, int m, int n) {               \
        square<T>(x, w, b, y, m, n);                                                                                   \
    }                                                                                                                  \
    extern "C" __global__ void square_##suffix##_backward(const T *x, const T *w, const T *b, const T *gy, T *gx,      \
                                                          T *gw, T *gb, int m, int n, int stride, T scale) {           \
        square_backward<T>(x, w, b, gy, gx, gw, gb, m, n, stride, scale);                                              \
    }
SQUARE(float, f32)
SQUARE(double, f64)

// The activation's own gradient through it: gx = 2 sqrt(y) gy, for y = x^2 with x > 0.
extern "C" __global__ void from_output(const float *y, const float *gy, float *gx, int n) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < n) gx[at] = 2.0f * sqrtf(y[at]) * gy[at];
}
