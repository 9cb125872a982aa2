// f16, f16x2, bf16, bf16x2: arithmetic, comparison, conversion, packing.
// targets: sm_75 sm_80 sm_90
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void halves(const __half *x, __half *y, __half alpha, __half2 beta)
{
    int i = threadIdx.x;
    __half v = __hfma(x[i], alpha, x[i + 1]);
    __half2 pair = __halves2half2(v, hexp(v));
    pair = __hfma2(pair, beta, __float2half2_rn(0.5f));
    y[i] = __hgt(v, alpha) ? __low2half(pair) : __hmax(__high2half(pair), hsqrt(v));
}

extern "C" __global__ void brain(const __nv_bfloat16 *x, __nv_bfloat162 *y, __nv_bfloat16 alpha)
{
    int i = threadIdx.x;
    __nv_bfloat16 v = __hadd(x[i], __hmul(alpha, x[i + 1]));
    y[i] = __floats2bfloat162_rn(__bfloat162float(v), __bfloat162float(__hneg(v)));
}
