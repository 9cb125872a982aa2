// Symmetric int8 quantisation of half rows: a scale a row, four values packed in a store where the row allows it.
#include <cuda_fp16.h>
#include <cstdint>

__device__ __noinline__ int8_t quantize_one(float v, float inverse)
{
    int q = __float2int_rn(v * inverse);
    return (int8_t)max(-127, min(127, q));
}

__global__ void quantize_rows(const __half *__restrict__ x, int8_t *__restrict__ q, float *__restrict__ scale,
                              int64_t cols, int64_t ldx)
{
    const __half *row = x + blockIdx.x * ldx;
    float top = 0.0f;
    for (int64_t i = threadIdx.x; i < cols; i += blockDim.x)
        top = fmaxf(top, fabsf(__half2float(row[i])));
    for (int mask = 16; mask > 0; mask >>= 1)
        top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, mask));
    __shared__ float tops[8];
    if (threadIdx.x % 32 == 0)
        tops[threadIdx.x / 32] = top;
    __syncthreads();
    for (int w = 0; w < blockDim.x / 32; ++w)
        top = fmaxf(top, tops[w]);
    float inverse = top > 0.0f ? 127.0f / top : 0.0f;
    int8_t *to = q + blockIdx.x * cols;
    if (cols % 4 == 0) {
        for (int64_t i = threadIdx.x; i < cols / 4; i += blockDim.x) {
            char4 packed;
            packed.x = quantize_one(__half2float(row[4 * i]), inverse);
            packed.y = quantize_one(__half2float(row[4 * i + 1]), inverse);
            packed.z = quantize_one(__half2float(row[4 * i + 2]), inverse);
            packed.w = quantize_one(__half2float(row[4 * i + 3]), inverse);
            reinterpret_cast<char4 *>(to)[i] = packed;
        }
    } else {
        for (int64_t i = threadIdx.x; i < cols; i += blockDim.x)
            to[i] = quantize_one(__half2float(row[i]), inverse);
    }
    if (threadIdx.x == 0)
        scale[blockIdx.x] = top / 127.0f;
}
