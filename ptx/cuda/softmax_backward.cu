// Gradient of softmax along the rows, out of its output y: grad_x = y * (g - sum(g * y)). One CTA per row.
// Launch: grid rows, block 256. The strides count elements from one row to the next.

#include "reduce.cuh"

constexpr int BLOCK = 256;

extern "C" __global__ void __launch_bounds__(BLOCK)
softmax_backward(const float *grad_out, const float *out, float *grad_x, int n_cols, int grad_out_stride,
                 int out_stride, int grad_x_stride)
{
    __shared__ float scratch[BLOCK];
    const long long row = blockIdx.x;
    const float *g = grad_out + row * grad_out_stride;
    const float *y = out + row * out_stride;
    float *dst = grad_x + row * grad_x_stride;

    float total = 0.0f;
    for (int c = threadIdx.x; c < n_cols; c += BLOCK)
        total += g[c] * y[c];
    total = reduce_block<Sum, BLOCK>(total, scratch);

    for (int c = threadIdx.x; c < n_cols; c += BLOCK)
        dst[c] = y[c] * (g[c] - total);
}
