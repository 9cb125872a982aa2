// __cluster_dims__, distributed shared memory, blocks as clusters.
// targets: sm_90 sm_100
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(2, 1, 1) pair_of_blocks(int *x)
{
    __shared__ int mine[32];
    cg::cluster_group cluster = cg::this_cluster();
    mine[threadIdx.x & 31] = x[threadIdx.x];
    cluster.sync();
    int *other = cluster.map_shared_rank(mine, cluster.block_rank() ^ 1);
    x[threadIdx.x] = other[threadIdx.x & 31] + cluster.num_blocks();
    cluster.sync();
}

extern "C" __global__ void __launch_bounds__(128, 2, 8) bounded_cluster(int *x)
{
    unsigned rank, size, id;
    asm("mov.u32 %0, %%cluster_ctarank; mov.u32 %1, %%cluster_nctarank; mov.u32 %2, %%clusterid.x;" : "=r"(rank), "=r"(size), "=r"(id));
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
    x[blockIdx.x] = rank + size * id;
}

extern "C" __global__ void __block_size__((64, 2, 1), (2, 1, 1)) grid_of_clusters(int *x) { x[blockIdx.x] = blockDim.x; }
