// out = alpha * x + y, computed in float and rounded once. Launch: grid cdiv(n, 256), block 256.

#include <cuda_bf16.h>

constexpr int BLOCK = 256;

extern "C" __global__ void __launch_bounds__(BLOCK)
axpy_bf16(const __nv_bfloat16 *x, const __nv_bfloat16 *y, __nv_bfloat16 *out, float alpha, int n)
{
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        out[i] = __float2bfloat16(alpha * __bfloat162float(x[i]) + __bfloat162float(y[i]));
}
