// vprintf with a stack buffer, __assertfail with string constants.
// flags: -UNDEBUG
#include <cassert>
#include <cstdio>

extern "C" __global__ void report(const float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    assert(n > 0 && "an \"empty\" array");
    if (i < n && x[i] < 0)
        printf("x[%d] = %f (%s)\n\t100%%\n", i, x[i], "negative");
}
