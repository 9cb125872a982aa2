// Adds a residual in place, then normalises by the root mean square: warps reduce by shuffles.
#include "gpu.h"

DEVICE static float across_warp(float v)
{
    for (int mask = 16; mask; mask >>= 1)
        v += __nvvm_shfl_sync_bfly_f32(~0u, v, mask, 31);
    return v;
}

extern "C" GLOBAL __attribute__((launch_bounds(256))) void
rms_norm_residual(float *residual, const float *x, const float *weight, float *out, int hidden, int residual_stride, float eps)
{
    static SHARED float sums[8];
    float *r = residual + (long)block_x() * residual_stride;
    x += (long)block_x() * hidden;
    out += (long)block_x() * hidden;
    float sq = 0;
    for (int i = thread_x(); i < hidden; i += width_x()) {
        float v = r[i] + x[i];
        r[i] = v;
        sq += v * v;
    }
    sq = across_warp(sq);
    if (thread_x() % 32 == 0)
        sums[thread_x() / 32] = sq;
    __syncthreads();
    sq = 0;
    for (int w = 0; w < width_x() / 32; ++w)
        sq += sums[w];
    float scale = __nvvm_rsqrt_approx_f(sq / hidden + eps);
    for (int i = thread_x(); i < hidden; i += width_x())
        out[i] = r[i] * scale * weight[i];
}
