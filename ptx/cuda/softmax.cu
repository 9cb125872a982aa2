// Softmax along the rows of a float matrix with any number of columns; one CTA per row.
// Launch: grid rows, block 256. The strides count elements from one row to the next.

#include "reduce.cuh"

constexpr int BLOCK = 256;

extern "C" __global__ void __launch_bounds__(BLOCK)
softmax(const float *x, float *out, int n_cols, int x_stride, int out_stride)
{
    __shared__ float scratch[BLOCK];
    const float *src = x + static_cast<long long>(blockIdx.x) * x_stride;
    float *dst = out + static_cast<long long>(blockIdx.x) * out_stride;

    float largest = -__int_as_float(0x7f800000);
    for (int c = threadIdx.x; c < n_cols; c += BLOCK)
        largest = fmaxf(largest, src[c]);
    largest = reduce_block<Max, BLOCK>(largest, scratch);

    float total = 0.0f;
    for (int c = threadIdx.x; c < n_cols; c += BLOCK)
        total += expf(src[c] - largest);
    total = reduce_block<Sum, BLOCK>(total, scratch);

    for (int c = threadIdx.x; c < n_cols; c += BLOCK)
        dst[c] = expf(src[c] - largest) / total;
}
