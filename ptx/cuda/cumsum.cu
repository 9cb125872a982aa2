// Sums of ever longer starts of each row, out[r, c] = x[r, 0] + ... + x[r, c]; one CTA per row.
// Launch: grid rows, block 128, dynamic shared memory for two rows.

constexpr int BLOCK = 128;

extern __shared__ float rows[];

extern "C" __global__ void __launch_bounds__(BLOCK)
cumsum(const float *x, float *out, int n_cols)
{
    const float *src = x + static_cast<long long>(blockIdx.x) * n_cols;
    float *dst = out + static_cast<long long>(blockIdx.x) * n_cols;
    float *from = rows;
    float *to = rows + n_cols;
    for (int c = threadIdx.x; c < n_cols; c += BLOCK)
        from[c] = src[c];
    __syncthreads();

    // After each step from[c] is the sum of the 2 * step elements that end at c, or of all up to c if those are fewer.
    for (int step = 1; step < n_cols; step *= 2) {
        for (int c = threadIdx.x; c < n_cols; c += BLOCK)
            to[c] = c < step ? from[c] : from[c] + from[c - step];
        __syncthreads();
        float *const summed = to;
        to = from;
        from = summed;
    }
    for (int c = threadIdx.x; c < n_cols; c += BLOCK)
        dst[c] = from[c];
}
