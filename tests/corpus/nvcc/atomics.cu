// Atomics of every operation, width and scope, with and without a result.
// targets: sm_75 sm_90
#include <cuda/atomic>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void classic(int *i, unsigned *u, unsigned long long *l, float *f, double *d, __half2 *h, __nv_bfloat16 *b)
{
    __shared__ int local;
    local = 0;
    int old = atomicAdd(i, 1);
    atomicSub(i + 1, 2);
    atomicMin(i + 2, old);
    atomicMax(u, 7u);
    atomicInc(u + 1, 100u);
    atomicDec(u + 2, 100u);
    atomicAnd(u + 3, 0xf0u);
    atomicOr(u + 4, 1u);
    atomicXor(u + 5, ~0u);
    atomicExch(f, 1.5f);
    atomicCAS(l, 1ull, 2ull);
    atomicMax((long long *)l + 1, -1ll);
    atomicAdd(f + 1, 0.25f);
    atomicAdd(d, 0.5);
    atomicAdd(h, __float2half2_rn(1.0f));
    atomicAdd(b, __float2bfloat16(1.0f));
    atomicAdd_block(i + 3, 1);
    atomicCAS_system(i + 4, 0, 1);
    atomicCAS((unsigned short *)i, (unsigned short)1, (unsigned short)2);
    atomicAdd(&local, old);
    i[5] = local;
}

extern "C" __global__ void ordered(int *x, unsigned long long *y, float *z)
{
    cuda::atomic_ref<int, cuda::thread_scope_device> a(x[0]);
    cuda::atomic_ref<unsigned long long, cuda::thread_scope_system> b(y[0]);
    cuda::atomic_ref<int, cuda::thread_scope_block> c(x[1]);
    cuda::atomic_ref<float, cuda::thread_scope_device> d(z[0]);
    a.fetch_add(1, cuda::memory_order_relaxed);
    b.store(a.load(cuda::memory_order_acquire), cuda::memory_order_release);
    int expected = 3;
    c.compare_exchange_strong(expected, 4, cuda::memory_order_acq_rel);
    d.fetch_add(0.5f, cuda::memory_order_seq_cst);
    c.fetch_max(expected, cuda::memory_order_release);
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_system);
}
