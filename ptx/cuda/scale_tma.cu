// out = alpha * x for float matrices, tile by tile through the tensor memory accelerator (sm_90 and newer). What lies
// outside of a matrix is read as 0 and not written; a map's rows begin at multiples of 16 bytes.
// Launch: grid cdiv(columns, 32) x cdiv(rows, 8), block 128; the maps of x and out have boxes of 8 x 32.

#include <cuda.h>

constexpr int BLOCK = 128;
constexpr int ROWS = 8;
constexpr int COLS = 32;

__device__ unsigned shared_address(const void *at)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

__device__ void load_tile(float *tile, const CUtensorMap *map, int col, int row, unsigned long long *barrier)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 ::"r"(shared_address(barrier)), "r"(static_cast<int>(ROWS * COLS * sizeof(float))) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];"
                 ::"r"(shared_address(tile)), "l"(map), "r"(col), "r"(row), "r"(shared_address(barrier)) : "memory");
}

// Waits until the barrier's first phase is over.
__device__ void wait(unsigned long long *barrier)
{
    unsigned done = 0;
    while (!done)
        asm volatile("{\n\t.reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t}"
                     : "=r"(done) : "r"(shared_address(barrier)) : "memory");
}

__device__ void store_tile(const CUtensorMap *map, int col, int row, const float *tile)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                 ::"l"(map), "r"(col), "r"(row), "r"(shared_address(tile)) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(BLOCK)
scale_tma(const __grid_constant__ CUtensorMap x, const __grid_constant__ CUtensorMap out, float alpha)
{
    __shared__ alignas(128) float tile[ROWS * COLS];
    __shared__ unsigned long long barrier;
    const int col = blockIdx.x * COLS;
    const int row = blockIdx.y * ROWS;

    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barrier)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        load_tile(tile, &x, col, row, &barrier);
    }
    __syncthreads();
    wait(&barrier);

    for (int i = threadIdx.x; i < ROWS * COLS; i += BLOCK)
        tile[i] *= alpha;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // before the accelerator reads what threads wrote
    __syncthreads();
    if (threadIdx.x == 0)
        store_tile(&out, col, row, tile);
}
