// dst += src, one element per thread: how a gradient with several sources comes together.
// Launch: grid cdiv(n, 256), block 256.

constexpr int BLOCK = 256;

extern "C" __global__ void __launch_bounds__(BLOCK)
accumulate(float *dst, const float *src, int n)
{
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        dst[i] += src[i];
}
