// out = x + y, one element per thread.
// Launch: grid cdiv(n, 256), block 256.

constexpr int BLOCK = 256;

extern "C" __global__ void __launch_bounds__(BLOCK)
vector_add(const float *x, const float *y, float *out, int n)
{
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        out[i] = x[i] + y[i];
}
