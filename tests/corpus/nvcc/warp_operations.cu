// shfl, vote, match, activemask, redux, bar.warp.sync, elect-like leader choice.
// targets: sm_75 sm_80
extern "C" __global__ void warp(const int *x, unsigned *out)
{
    unsigned t = threadIdx.x, all = 0xffffffffu;
    int v = x[t];
    int sum = v;
    for (int d = 16; d > 0; d >>= 1)
        sum += __shfl_down_sync(all, sum, d);
    v += __shfl_sync(all, v, 3, 8) + __shfl_up_sync(all, v, 1) + __shfl_xor_sync(all, v, 4, 16);
    float f = __shfl_xor_sync(all, (float)v, 1);
    unsigned long long wide = __shfl_sync(all, (unsigned long long)v, 0);
    unsigned ballot = __ballot_sync(all, v > 0);
    int same;
    unsigned peers = __match_any_sync(all, v), everyone = __match_all_sync(all, v, &same);
    __syncwarp();
    unsigned r = __activemask() + __any_sync(all, v) + __all_sync(all, v) + ballot + peers + everyone + same;
#if __CUDA_ARCH__ >= 800
    r += __reduce_add_sync(all, r) + __reduce_min_sync(all, v) + __reduce_max_sync(all, r) + __reduce_xor_sync(all, r);
#endif
    r += __syncthreads_count(v > 1) + __syncthreads_and(v) + __syncthreads_or(v);
    out[t] = r + sum + (unsigned)f + (unsigned)wide;
}
