// A fault in each kernel, on the line that bears the kernel's name in a comment.
// targets: sm_80
// flags: -lineinfo -UNDEBUG
#include <cassert>
#include <cstdio>
#include <cuda_pipeline_primitives.h>

#define KERNEL extern "C" __global__ void

__constant__ int table[16] = {1, 2, 3};
__device__ float bins[32];

__device__ int place() { return blockIdx.x * blockDim.x + threadIdx.x; }

__device__ __noinline__ void put(float *to, int k, float value)
{
    to[k] = value; // in_a_function
}

__device__ __forceinline__ float neighbour(const float *x, int k)
{
    return x[k + 1] * 2.0f; // in_an_inlined_function
}

__device__ __noinline__ int deeper(int n, int *sink)
{
    if (n < 0) return 0;
    sink[0] = n;
    return deeper(n + 1, sink) + sink[1] + 1; // recursion_without_end
}

__device__ __noinline__ int twice(int n) { return 2 * n; }
__device__ __noinline__ int thrice(int n) { return 3 * n; }
__device__ int (*const functions[4])(int) = {twice, thrice, nullptr, nullptr};

KERNEL past_the_end_by_one(const float *in, float *out, int n)
{
    int i = place();
    if (i <= n)
        out[i] = in[0]; // past_the_end_by_one
}

KERNEL past_the_end_by_a_page(const float *in, float *out, int n)
{
    int i = place();
    out[i + 1024] = in[i]; // past_the_end_by_a_page
}

KERNEL before_the_start(const float *in, float *out, int n)
{
    int i = place();
    out[i] = in[i - 1]; // before_the_start
}

KERNEL misaligned_pair(const float *in, float *out, int n)
{
    int i = place();
    float2 two = reinterpret_cast<const float2 *>(in + 1)[i]; // misaligned_pair
    out[i] = two.x + two.y;
}

KERNEL a_wide_store(const float *in, float *out, int n)
{
    int i = place();
    reinterpret_cast<float4 *>(out)[i] = make_float4(0, 1, 2, in[i]); // a_wide_store
}

KERNEL a_column_too_many(const float *in, float *out, int n)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n)
        out[row * n + column] = 1.0f; // a_column_too_many
}

KERNEL a_round_too_many(const float *in, float *out, int n)
{
    float sum = 0;
    for (int k = threadIdx.x; k <= n; k += blockDim.x)
        sum += in[k]; // a_round_too_many
    out[threadIdx.x] = sum;
}

KERNEL gathered(const int *index, float *out, int n)
{
    int i = place();
    out[2 * index[i]] = 1.0f; // gathered
}

KERNEL in_a_function(const float *in, float *out, int n)
{
    int i = place();
    if (i % 7 == 3)
        put(out, i + (i > 50 ? n : 0), in[i]);
}

KERNEL in_an_inlined_function(const float *in, float *out, int n)
{
    out[place()] = neighbour(in, place());
}

KERNEL shared_overrun(const float *in, float *out, int n)
{
    __shared__ float tile[64];
    tile[threadIdx.x + 1] = in[threadIdx.x]; // shared_overrun
    __syncthreads();
    out[threadIdx.x] = tile[63 - threadIdx.x];
}

KERNEL dynamic_shared_overrun(const float *in, float *out, int n)
{
    extern __shared__ float room[];
    room[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = room[threadIdx.x * 2]; // dynamic_shared_overrun
}

KERNEL local_overrun(const float *in, float *out, int n)
{
    float own[8];
    for (int k = 0; k < 8; k++)
        own[(k * n) & 7] = in[k];
    out[threadIdx.x] = own[threadIdx.x / 4]; // local_overrun
}

KERNEL past_a_module_variable(const float *in, float *out, int n)
{
    atomicAdd(&bins[threadIdx.x], in[0]); // past_a_module_variable
}

KERNEL constant_written(const float *in, float *out, int n)
{
    int *to = const_cast<int *>(table);
    asm volatile("" : "+l"(to));
    to[threadIdx.x & 15] = n; // constant_written
}

KERNEL atomic_past_the_end(const float *in, float *out, int n)
{
    int i = place();
    atomicMax(reinterpret_cast<int *>(out) + 2 * i, i); // atomic_past_the_end
}

KERNEL asynchronous_copy(const float4 *in, float *out, int n)
{
    __shared__ float4 tile[64];
    __pipeline_memcpy_async(&tile[threadIdx.x], &in[threadIdx.x + n], 16); // asynchronous_copy
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[threadIdx.x] = tile[threadIdx.x].x;
}

KERNEL recursion_without_end(const float *in, int *out, int n)
{
    out[threadIdx.x] = deeper(n, out);
}

KERNEL call_through_null(const float *in, int *out, int n)
{
    out[threadIdx.x] = functions[threadIdx.x & 3](n); // call_through_null
}

KERNEL an_assertion(const float *in, float *out, int n)
{
    int i = place();
    assert(i != 77); // an_assertion
    out[i] = in[i];
}

KERNEL a_trap(const float *in, float *out, int n)
{
    int i = place();
    out[i] = in[i];
    if (i == 99)
        __trap(); // a_trap
}

KERNEL freed_heap(const float *in, float *out, int n)
{
    float *block = static_cast<float *>(malloc(64));
    block[n & 15] = in[0];
    free(block);
    out[threadIdx.x] = block[n & 15]; // freed_heap
}

KERNEL freed_twice(const float *in, float *out, int n)
{
    void *block = malloc(64);
    free(block);
    if (threadIdx.x == 5)
        free(block); // freed_twice
}

KERNEL freed_unowned(const float *in, float *out, int n)
{
    if (threadIdx.x == 9)
        free(out); // freed_unowned
}

KERNEL printed_wildly(const float *in, float *out, int n)
{
    if (threadIdx.x == 3)
        printf("%s\n", reinterpret_cast<const char *>(out) + n); // printed_wildly
}

KERNEL an_endless_loop(const volatile int *in, int *out, int n)
{
    while (in[0] == 0) // an_endless_loop
        n = n * 5 + 1;
    out[0] = n;
}

KERNEL a_wrong_mask(const float *in, float *out, int n)
{
    float x = in[threadIdx.x];
    out[threadIdx.x] = __shfl_xor_sync(0xffff, x, 1); // a_wrong_mask
}

KERNEL division_by_zero(const float *in, int *out, int n)
{
    out[place()] = (place() + 1) / (n - 128);
}
