// Softmax along the rows of a float matrix with any number of columns; one CTA per row.
// Launch: grid rows, block 256. The strides count elements from one row to the next.

constexpr int BLOCK = 256;

struct Max {
    __device__ static float combine(float a, float b) { return fmaxf(a, b); }
};

struct Sum {
    __device__ static float combine(float a, float b) { return a + b; }
};

// Reduces one value per thread in a tree over shared memory; every thread gets the result.
template <typename Op>
__device__ float reduce_block(float value, float *scratch)
{
    const int t = threadIdx.x;
    scratch[t] = value;
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (t < half)
            scratch[t] = Op::combine(scratch[t], scratch[t + half]);
        __syncthreads();
    }
    const float result = scratch[0];
    __syncthreads();  // scratch may be written again after the return
    return result;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
softmax(const float *x, float *out, int n_cols, int x_stride, int out_stride)
{
    __shared__ float scratch[BLOCK];
    const float *src = x + static_cast<long long>(blockIdx.x) * x_stride;
    float *dst = out + static_cast<long long>(blockIdx.x) * out_stride;

    float largest = -__int_as_float(0x7f800000);
    for (int c = threadIdx.x; c < n_cols; c += BLOCK)
        largest = fmaxf(largest, src[c]);
    largest = reduce_block<Max>(largest, scratch);

    float total = 0.0f;
    for (int c = threadIdx.x; c < n_cols; c += BLOCK)
        total += expf(src[c] - largest);
    total = reduce_block<Sum>(total, scratch);

    for (int c = threadIdx.x; c < n_cols; c += BLOCK)
        dst[c] = expf(src[c] - largest) / total;
}
