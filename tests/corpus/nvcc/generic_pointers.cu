// Pointers into every state space, address space tests, conversions both ways, a kernel-parameter pointer.
struct Config { int size; float weights[8]; };
__constant__ int lookup[8] = {1, 2, 4, 8, 16, 32, 64, 128};

__device__ __noinline__ int sum(const int *p, int n)
{
    int total = 0;
    for (int i = 0; i < n; i++)
        total += p[i];
    return total;
}

extern "C" __global__ void spaces(int *global, const __grid_constant__ Config config, int which)
{
    __shared__ int shared[8];
    int local[8];
    for (int i = 0; i < 8; i++)
        shared[i] = local[i] = global[i] + i;
    __syncthreads();
    const int *p = which == 0 ? global : which == 1 ? shared : which == 2 ? local : lookup;
    const float *w = &config.weights[which & 7];
    int flags = __isGlobal(p) + 2 * __isShared(p) + 4 * __isLocal(p) + 8 * __isConstant(p) + 16 * __isGridConstant(w);
    global[which] = sum(p, 8) + flags + (int)*w + (int)__cvta_generic_to_constant(lookup);
}
