// Line information through three levels of inlining and a header.
// flags: -lineinfo
#include "line_info.h"

__device__ __forceinline__ float middle(float x)
{
    float y = innermost(x, 2.0f);
    return y * y;
}

extern "C" __global__ void outer(float *x, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        float v = x[i];
        x[i] = middle(v) + innermost(v, -1.0f);
    }
}
