// Tensor maps as grid constants, bulk copies, mbarriers with transaction counts, proxy fences.
// targets: sm_90a
#include <cuda/barrier>
#include <cuda.h>

extern "C" __global__ void load_tile(const __grid_constant__ CUtensorMap map, float *out, int x, int y)
{
    __shared__ alignas(128) float tile[16][16];
    __shared__ alignas(8) unsigned long long barrier;
    unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier), dst = (unsigned)__cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(bar));
        asm volatile("prefetch.tensormap [%0];" ::"l"(&map));
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "n"(sizeof(tile)));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     ::"r"(dst), "l"(&map), "r"(x), "r"(y), "r"(bar) : "memory");
    }
    __syncthreads();
    asm volatile("{\n\t.reg .pred complete;\nwaitLoop:\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], 0, 0x989680;\n\t"
                 "@complete bra.uni DONE;\n\tbra waitLoop;\nDONE:\n\t}" ::"r"(bar) : "memory");
    out[threadIdx.x] = tile[threadIdx.x >> 4][threadIdx.x & 15];
    asm volatile("fence.proxy.async.shared::cta;\n\t"
                 "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;\n\t"
                 "cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group.read 0;" ::"l"(out + 1024), "r"(dst) : "memory");
}

extern "C" __global__ void transactions(const int *x, int *y)
{
    using Barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ alignas(16) int stage[64];
    __shared__ Barrier barrier;
    if (threadIdx.x == 0)
        init(&barrier, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        cuda::device::memcpy_async_tx(stage, x, cuda::aligned_size_t<16>(sizeof stage), barrier);
        Barrier::arrival_token token = cuda::device::barrier_arrive_tx(barrier, 1, sizeof stage);
        barrier.wait(std::move(token));
    }
    __syncthreads();
    y[threadIdx.x] = stage[threadIdx.x & 63];
}
