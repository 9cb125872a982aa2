// Relocatable code: external functions and variables, weak templates, visible functions.
// flags: -rdc=true
extern __device__ float elsewhere(float x, int n);
extern __device__ int counters[16];
extern __constant__ float weights[4];

__device__ int defined_here[3] = {1, 2, 3};

template <typename T> __device__ __noinline__ T clamp_to(T x, T limit)
{
    static __device__ int calls;
    calls++;
    return x > limit ? limit : x;
}

__device__ __noinline__ float exported(float x) { return x * weights[1]; }

inline __device__ __noinline__ int inline_function(int x) { return x * 3; }

extern "C" __global__ void linked(float *x)
{
    int i = threadIdx.x;
    x[i] = clamp_to(elsewhere(x[i], inline_function(i)), 4.0f) + exported(x[i]) + counters[i & 15] + defined_here[i % 3];
}
