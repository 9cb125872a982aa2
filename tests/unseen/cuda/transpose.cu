// Batched transpose through padded shared memory, for two element types in one file.
#include <cuda_fp16.h>

template <typename T, int TILE, int ROWS>
__global__ void transpose_kernel(T *__restrict__ dst, const T *__restrict__ src, int height, int width)
{
    __shared__ T tile[TILE][TILE + 1];
    const T *from = src + (size_t)blockIdx.z * height * width;
    T *to = dst + (size_t)blockIdx.z * height * width;
    int col = blockIdx.x * TILE + threadIdx.x;
    int row = blockIdx.y * TILE + threadIdx.y;
#pragma unroll
    for (int j = 0; j < TILE; j += ROWS)
        if (col < width && row + j < height)
            tile[threadIdx.y + j][threadIdx.x] = from[(size_t)(row + j) * width + col];
    __syncthreads();
    col = blockIdx.y * TILE + threadIdx.x;
    row = blockIdx.x * TILE + threadIdx.y;
#pragma unroll
    for (int j = 0; j < TILE; j += ROWS)
        if (col < height && row + j < width)
            to[(size_t)(row + j) * height + col] = tile[threadIdx.x][threadIdx.y + j];
}

template __global__ void transpose_kernel<__half, 32, 8>(__half *, const __half *, int, int);
template __global__ void transpose_kernel<double, 16, 4>(double *, const double *, int, int);
