// Reduction of one value per thread over a CTA of a power of two of threads.

#pragma once

struct Max {
    __device__ static float combine(float a, float b) { return fmaxf(a, b); }
};

struct Sum {
    __device__ static float combine(float a, float b) { return a + b; }
};

// Reduces in a tree over shared memory of THREADS floats; every thread gets the result.
template <typename Op, int THREADS>
__device__ float reduce_block(float value, float *scratch)
{
    const int t = threadIdx.x;
    scratch[t] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (t < half)
            scratch[t] = Op::combine(scratch[t], scratch[t + half]);
        __syncthreads();
    }
    const float result = scratch[0];
    __syncthreads();  // scratch may be written again after the return
    return result;
}
