// Kernels that the CPU device is measured with. Made into kernels.ptx by:
//   nvcc -ptx -O3 -std=c++17 -arch=compute_80 kernels.cu -o kernels.ptx

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
