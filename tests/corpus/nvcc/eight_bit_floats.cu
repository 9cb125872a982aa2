// e4m3, e5m2 and their packed conversions; fp4 and fp6 where the target has them.
// targets: sm_89 sm_100a
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_fp6.h>
#include <cuda_fp4.h>

extern "C" __global__ void convert(const float2 *x, __nv_fp8x2_e4m3 *a, __nv_fp8x2_e5m2 *b, __half2 *c, __nv_fp4x2_e2m1 *d,
                                   __nv_fp6x2_e2m3 *e)
{
    int i = threadIdx.x;
    a[i] = __nv_fp8x2_e4m3(x[i]);
    b[i] = __nv_fp8x2_e5m2(x[i]);
    c[i] = __half2(a[i]);
    d[i] = __nv_fp4x2_e2m1(x[i]);
    e[i] = __nv_fp6x2_e2m3(x[i]);
}
