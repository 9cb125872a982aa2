// cp.async in its sizes and groups, cuda::pipeline's primitives, an mbarrier from the header.
#include <cuda/barrier>
#include <cuda_pipeline.h>

extern "C" __global__ void copy_in(const float4 *x, float4 *y)
{
    __shared__ float4 stage[2][64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&stage[0][t], &x[t], 16);
    __pipeline_commit();
    __pipeline_memcpy_async((float *)&stage[1][t], (const float *)&x[t + 64], 4, 2);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    y[t] = stage[0][t ^ 1];
    __pipeline_wait_prior(0);
    y[t + 64] = stage[1][t];
}

extern "C" __global__ void through_barrier(const int *x, int *y)
{
    using Barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ Barrier barrier;
    __shared__ int stage[128];
    if (threadIdx.x == 0)
        init(&barrier, blockDim.x);
    __syncthreads();
    cuda::memcpy_async(&stage[threadIdx.x], &x[threadIdx.x], cuda::aligned_size_t<4>(4), barrier);
    barrier.arrive_and_wait();
    y[threadIdx.x] = stage[blockDim.x - 1 - threadIdx.x];
}
