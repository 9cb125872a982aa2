// Inclusive or exclusive prefix sums of rows of 64-bit integers: a block a row, a carry from chunk to chunk.
#include <cstdint>

template <int BLOCK, bool INCLUSIVE>
__global__ void __launch_bounds__(BLOCK, 2) scan_rows(const int64_t *in, int64_t *out, int64_t len)
{
    __shared__ int64_t buffer[2][BLOCK];
    __shared__ int64_t carry;
    const int64_t base = (int64_t)blockIdx.x * len;
    if (threadIdx.x == 0)
        carry = 0;
    for (int64_t start = 0; start < len; start += BLOCK) {
        int64_t i = start + threadIdx.x;
        int64_t own = i < len ? in[base + i] : 0;
        int now = 0;
        buffer[0][threadIdx.x] = own;
        __syncthreads();
        for (int d = 1; d < BLOCK; d *= 2) {
            int64_t v = buffer[now][threadIdx.x];
            if (threadIdx.x >= d)
                v += buffer[now][threadIdx.x - d];
            buffer[now ^ 1][threadIdx.x] = v;
            now ^= 1;
            __syncthreads();
        }
        int64_t sum = buffer[now][threadIdx.x] + carry;
        if (i < len)
            out[base + i] = INCLUSIVE ? sum : sum - own;
        __syncthreads();
        if (threadIdx.x == BLOCK - 1)
            carry = sum;
    }
}

template __global__ void scan_rows<128, true>(const int64_t *, int64_t *, int64_t);
template __global__ void scan_rows<64, false>(const int64_t *, int64_t *, int64_t);
