// Elementwise over two tensors with five scalars: float4 where pointers allow it, a scalar tail, a grid-stride loop.
#include <cstdint>

extern "C" __global__ void __launch_bounds__(128)
affine_clamp(const float *__restrict__ x, const float *__restrict__ y, float *__restrict__ out, int n,
             float alpha, float beta, float gamma, float lo, float hi)
{
    int first = blockIdx.x * blockDim.x + threadIdx.x;
    int step = gridDim.x * blockDim.x;
    int n4 = n / 4;
    const float4 *x4 = reinterpret_cast<const float4 *>(x);
    const float4 *y4 = reinterpret_cast<const float4 *>(y);
    for (int i = first; i < n4; i += step) {
        float4 a = x4[i], b = y4[i], r;
        r.x = fminf(fmaxf(alpha * a.x + beta * b.x + gamma, lo), hi);
        r.y = fminf(fmaxf(alpha * a.y + beta * b.y + gamma, lo), hi);
        r.z = fminf(fmaxf(alpha * a.z + beta * b.z + gamma, lo), hi);
        r.w = fminf(fmaxf(alpha * a.w + beta * b.w + gamma, lo), hi);
        reinterpret_cast<float4 *>(out)[i] = r;
    }
    int tail = n4 * 4 + first;
    if (tail < n)
        out[tail] = fminf(fmaxf(alpha * x[tail] + beta * y[tail] + gamma, lo), hi);
}
