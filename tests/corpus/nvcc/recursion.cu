// Functions that call themselves and each other; parameters and results of several kinds.
struct Pair { long long first; float second; };

__device__ __noinline__ int ackermann(int m, int n)
{
    if (m == 0)
        return n + 1;
    return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

__device__ bool odd(unsigned n);
__device__ __noinline__ bool even(unsigned n) { return n == 0 ? true : odd(n - 1); }
__device__ __noinline__ bool odd(unsigned n) { return n == 0 ? false : even(n - 1); }

__device__ __noinline__ Pair step(Pair p, char by, double scale)
{
    return {p.first + by, (float)(p.second * scale)};
}

extern "C" __global__ void recurse(int m, int n, long long *out)
{
    Pair p = step({m, 2.0f}, 3, 0.5);
    out[0] = ackermann(m, n) + even(n) + p.first + (long long)p.second;
}
