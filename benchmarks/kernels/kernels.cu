// Kernels that the CPU device is measured with. Made into kernels.ptx by regenerate.py.

extern "C" __global__ void vector_add(const float *x, const float *y, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = x[i] + y[i];
}

__device__ float warp_max(float v)
{
    for (int k = 16; k; k /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, k));
    return v;
}

__device__ float warp_sum(float v)
{
    for (int k = 16; k; k /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, k);
    return v;
}

// One CTA of 128 threads per row.
extern "C" __global__ void softmax(const float *x, float *out, int columns)
{
    __shared__ float room[8];
    const float *row = x + static_cast<size_t>(blockIdx.x) * columns;
    float *to = out + static_cast<size_t>(blockIdx.x) * columns;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;

    float top = -__int_as_float(0x7f800000);
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        top = fmaxf(top, row[c]);
    top = warp_max(top);
    if (lane == 0)
        room[warp] = top;
    __syncthreads();
    top = fmaxf(fmaxf(room[0], room[1]), fmaxf(room[2], room[3]));

    float sum = 0.0f;
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        sum += __expf(row[c] - top);
    sum = warp_sum(sum);
    if (lane == 0)
        room[4 + warp] = sum;
    __syncthreads();
    sum = room[4] + room[5] + room[6] + room[7];

    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        to[c] = __expf(row[c] - top) / sum;
}

constexpr int TILE = 16;

// c = a b, all n by n, n a multiple of 16; blocks of 16 by 16 threads.
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n)
{
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty, column = blockIdx.x * TILE + tx;
    float total = 0.0f;
    for (int k = 0; k < n; k += TILE) {
        as[ty][tx] = a[row * n + k + tx];
        bs[ty][tx] = b[(k + ty) * n + column];
        __syncthreads();
        for (int j = 0; j < TILE; ++j)
            total += as[ty][j] * bs[j][tx];
        __syncthreads();
    }
    c[row * n + column] = total;
}

extern "C" __global__ void mandelbrot(int *out, int width, int height, int rounds)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    const float cr = -2.0f + 3.0f * x / width, ci = -1.5f + 3.0f * y / height;
    float zr = 0.0f, zi = 0.0f;
    int k = 0;
    while (k < rounds && zr * zr + zi * zi < 4.0f) {
        const float next = zr * zr - zi * zi + cr;
        zi = 2.0f * zr * zi + ci;
        zr = next;
        ++k;
    }
    out[y * width + x] = k;
}

constexpr int SIDE = 64, DEPTH = 16, EACH = 4;

// c = a b, all n by n, n a multiple of 64; blocks of 16 by 16 threads, each with 4 by 4 elements of c in registers.
extern "C" __global__ void sgemm(const float *a, const float *b, float *c, int n)
{
    __shared__ float as[DEPTH][SIDE], bs[DEPTH][SIDE];
    const int tx = threadIdx.x, ty = threadIdx.y, number = ty * 16 + tx;
    const int top = blockIdx.y * SIDE, left = blockIdx.x * SIDE;
    const int a_row = number / 4, a_column = number % 4 * 4, b_row = number / 16, b_column = number % 16 * 4;
    float total[EACH][EACH] = {};
    for (int k = 0; k < n; k += DEPTH) {
        const float4 av = *reinterpret_cast<const float4 *>(&a[(top + a_row) * n + k + a_column]);
        const float4 bv = *reinterpret_cast<const float4 *>(&b[(k + b_row) * n + left + b_column]);
        as[a_column][a_row] = av.x;
        as[a_column + 1][a_row] = av.y;
        as[a_column + 2][a_row] = av.z;
        as[a_column + 3][a_row] = av.w;
        *reinterpret_cast<float4 *>(&bs[b_row][b_column]) = bv;
        __syncthreads();
        for (int j = 0; j < DEPTH; ++j) {
            float x[EACH], y[EACH];
            for (int i = 0; i < EACH; ++i) {
                x[i] = as[j][ty * EACH + i];
                y[i] = bs[j][tx * EACH + i];
            }
            for (int i = 0; i < EACH; ++i)
                for (int l = 0; l < EACH; ++l)
                    total[i][l] += x[i] * y[l];
        }
        __syncthreads();
    }
    for (int i = 0; i < EACH; ++i)
        for (int l = 0; l < EACH; ++l)
            c[(top + ty * EACH + i) * n + left + tx * EACH + l] = total[i][l];
}

// A sum a CTA of 256 threads, each of which strides over the whole of x.
extern "C" __global__ void reduction(const float *x, float *out, int n)
{
    __shared__ float room[8];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += x[i];
    sum = warp_sum(sum);
    if (lane == 0)
        room[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = warp_sum(lane < 8 ? room[lane] : 0.0f);
        if (lane == 0)
            out[blockIdx.x] = sum;
    }
}

// How often each byte occurs in n words; CTAs of 256 threads.
extern "C" __global__ void histogram(const unsigned *words, unsigned *counts, int n)
{
    __shared__ unsigned bins[256];
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const unsigned word = words[i];
        atomicAdd(&bins[word & 255], 1);
        atomicAdd(&bins[word >> 8 & 255], 1);
        atomicAdd(&bins[word >> 16 & 255], 1);
        atomicAdd(&bins[word >> 24], 1);
    }
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], bins[threadIdx.x]);
}
