// Loads and stores with cache operators, eviction, prefetch, vectors, the read-only path.
// targets: sm_80 sm_100
extern "C" __global__ void hints(const float4 *__restrict__ x, float4 *y, const double2 *d, const uchar4 *c, unsigned long long policy)
{
    int i = threadIdx.x;
    float4 a = __ldg(x + i), b = __ldcs(x + i + 1), e = __ldcg(x + i + 2);
    double2 f = __ldcv(d + i);
    uchar4 g = c[i];
    __stwt(y + 1, e);
    __stcs(y + 2, b);
    float v0, v1;
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v2.f32 {%0, %1}, [%2+16];" : "=f"(v0), "=f"(v1) : "l"(x + i));
    asm volatile("prefetch.global.L2::evict_last [%0];\n\tprefetchu.L1 [%0];" ::"l"(x + 8));
    asm volatile("createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %0, 0.5;" : "=l"(policy));
    asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(v0) : "l"(x + i), "l"(policy));
    asm volatile("discard.global.L2 [%0], 128;\n\tapplypriority.global.L2::evict_normal [%0+0x80], 128;" ::"l"(y + 64));
    y[i] = make_float4(a.x + v0, b.y + v1, (float)f.x + g.z, __builtin_assume_aligned(x, 16) ? e.w : 0);
}
