// Unusual symbols: $ in names, UTF-8 in comments, an operator, a lambda in a kernel, a static variable in a function.
// flags: --extended-lambda
template <typename F> __global__ void apply(F f, int *x) { x[threadIdx.x] = f(x[threadIdx.x]); }

struct Ops {
    __device__ __noinline__ int operator()(int v) const
    {
        static __device__ int calls$made = 5;
        return v + calls$made++;
    }
};

extern "C" __global__ void dollar$sign_(int *x$)
{
    auto twice = [](int v) { return v * 2; };
    x$[0] = twice(x$[1]) + Ops()(x$[2]);  // naïve
}

template __global__ void apply<Ops>(Ops, int *);
