// A binary operation over tensors that broadcast, as frameworks do it: three pointers, and sizes with multipliers in
// place of divisions, in arrays of structs by value; four elements a thread.
#include <cstdint>

struct Divider {
    uint32_t divisor, magic, shift;
    __device__ void divmod(uint32_t n, uint32_t &quotient, uint32_t &rest) const
    {
        uint32_t t = __umulhi(n, magic);
        quotient = (t + n) >> shift;
        rest = n - quotient * divisor;
    }
};

template <int NARGS, int MAX_DIMS>
struct Offsets {
    int dims;
    Divider sizes[MAX_DIMS];
    uint32_t strides[MAX_DIMS][NARGS];
    __device__ void get(uint32_t linear, uint32_t (&offsets)[NARGS]) const
    {
        for (int a = 0; a < NARGS; ++a)
            offsets[a] = 0;
#pragma unroll
        for (int d = 0; d < MAX_DIMS; ++d) {
            if (d == dims)
                break;
            uint32_t quotient, rest;
            sizes[d].divmod(linear, quotient, rest);
            linear = quotient;
#pragma unroll
            for (int a = 0; a < NARGS; ++a)
                offsets[a] += rest * strides[d][a];
        }
    }
};

struct Pointers {
    char *data[3];
};

struct ScaledSub {
    float alpha;
    __device__ float operator()(float a, float b) const { return a - alpha * b; }
};

template <int THREADS, int PER_THREAD, typename Op>
__global__ void __launch_bounds__(THREADS, 4) elementwise_kernel(int n, Pointers pointers, Offsets<3, 3> calculator, Op op)
{
    int i = THREADS * PER_THREAD * blockIdx.x + threadIdx.x;
#pragma unroll
    for (int k = 0; k < PER_THREAD; ++k) {
        if (i < n) {
            uint32_t at[3];
            calculator.get(i, at);
            *(float *)(pointers.data[0] + at[0]) =
                op(*(const float *)(pointers.data[1] + at[1]), *(const float *)(pointers.data[2] + at[2]));
            i += THREADS;
        }
    }
}

template __global__ void elementwise_kernel<128, 4, ScaledSub>(int, Pointers, Offsets<3, 3>, ScaledSub);
