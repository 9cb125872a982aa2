// Layer normalisation of rows: shuffles within warps, then shared memory; weight and bias may be null.
#include <cuda_bf16.h>

__device__ __forceinline__ float warp_sum(float v)
{
    for (int offset = 16; offset > 0; offset >>= 1)
        v += __shfl_down_sync(0xffffffffu, v, offset);
    return v;
}

__device__ float block_sum(float v)
{
    __shared__ float partial[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    v = warp_sum(v);
    __syncthreads();
    if (lane == 0)
        partial[warp] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32 ? partial[lane] : 0.0f;
    if (warp == 0) {
        v = warp_sum(v);
        if (lane == 0)
            partial[0] = v;
    }
    __syncthreads();
    return partial[0];
}

__device__ __forceinline__ float to_float(float v) { return v; }
__device__ __forceinline__ float to_float(__nv_bfloat16 v) { return __bfloat162float(v); }
template <typename T> __device__ __forceinline__ T from_float(float v);
template <> __device__ __forceinline__ float from_float<float>(float v) { return v; }
template <> __device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float v) { return __float2bfloat16(v); }

template <typename T>
__global__ void layer_norm_fwd(T *out, float *mean_out, float *rstd_out, const T *inp, const float *weight,
                               const float *bias, unsigned cols, size_t row_stride, float eps)
{
    const T *x = inp + blockIdx.x * row_stride;
    float sum = 0.0f;
    for (unsigned i = threadIdx.x; i < cols; i += blockDim.x)
        sum += to_float(x[i]);
    float mean = block_sum(sum) / cols;
    float sq = 0.0f;
    for (unsigned i = threadIdx.x; i < cols; i += blockDim.x) {
        float d = to_float(x[i]) - mean;
        sq += d * d;
    }
    float rstd = rsqrtf(block_sum(sq) / cols + eps);
    if (threadIdx.x == 0) {
        mean_out[blockIdx.x] = mean;
        rstd_out[blockIdx.x] = rstd;
    }
    T *y = out + (size_t)blockIdx.x * cols;
    for (unsigned i = threadIdx.x; i < cols; i += blockDim.x) {
        float v = (to_float(x[i]) - mean) * rstd;
        if (weight)
            v *= weight[i];
        if (bias)
            v += bias[i];
        y[i] = from_float<T>(v);
    }
}

template __global__ void layer_norm_fwd<float>(float *, float *, float *, const float *, const float *, const float *,
                                               unsigned, size_t, float);
template __global__ void layer_norm_fwd<__nv_bfloat16>(__nv_bfloat16 *, float *, float *, const __nv_bfloat16 *,
                                                       const float *, const float *, unsigned, size_t, float);
