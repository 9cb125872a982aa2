// Grid-wide synchronisation, groups, tiles.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

extern "C" __global__ void two_phases(const int *x, int *y)
{
    cg::grid_group grid = cg::this_grid();
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    int total = cg::reduce(tile, x[grid.thread_rank()], cg::plus<int>());
    if (tile.thread_rank() == 0)
        y[grid.thread_rank() / 8] = total;
    grid.sync();
    cg::coalesced_group active = cg::coalesced_threads();
    y[grid.thread_rank() / 8] += active.size();
}
