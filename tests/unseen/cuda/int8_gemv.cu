// A matrix of int8 weights, a scale a group, times an int8 vector: dot products of four, a warp a row.
#include <cstdint>

extern "C" __global__ void int8_gemv(const int *__restrict__ weights, const float *__restrict__ scales,
                                     const int *__restrict__ x, float x_scale, float *__restrict__ y, int rows, int words,
                                     int words_per_group)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize;
    int lane = threadIdx.x % warpSize;
    if (row >= rows)
        return;
    const int groups = words / words_per_group;
    float total = 0.0f;
    for (int g = 0; g < groups; ++g) {
        int acc = 0;
        for (int w = lane; w < words_per_group; w += warpSize)
            acc = __dp4a(weights[row * words + g * words_per_group + w], x[g * words_per_group + w], acc);
        acc = __reduce_add_sync(0xffffffff, acc);
        total += acc * scales[row * groups + g];
    }
    if (lane == 0)
        y[row] = total * x_scale;
}
