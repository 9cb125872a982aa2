// The largest element of each row and where it first is: a warp a row, four rows a block.
#include <math_constants.h>

extern "C" __global__ void argmax_rows(const float *scores, int rows, int cols, float *best, int *where)
{
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows)
        return;
    float value = -CUDART_INF_F;
    int at = 0x7fffffff;
    for (int j = threadIdx.x; j < cols; j += 32) {
        float v = scores[row * cols + j];
        if (v > value) {
            value = v;
            at = j;
        }
    }
    for (int mask = 16; mask; mask /= 2) {
        float other = __shfl_xor_sync(~0u, value, mask);
        int other_at = __shfl_xor_sync(~0u, at, mask);
        if (other > value || (other == value && other_at < at)) {
            value = other;
            at = other_at;
        }
    }
    if (threadIdx.x == 0) {
        best[row] = value;
        where[row] = at;
    }
}
