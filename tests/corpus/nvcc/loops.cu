// Nested loops with break and continue, unrolling pragmas, early exits, divergence.
extern "C" __global__ void collatz(const unsigned *x, unsigned *steps, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned v = x[i], count = 0;
    while (v != 1 && count < 1000) {
        v = v & 1 ? 3 * v + 1 : v / 2;
        count++;
    }
    steps[i] = count;
}

extern "C" __global__ void matrix(const float *a, const float *b, float *c, int n)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    float total = 0;
#pragma unroll 1
    for (int k = 0; k < n; k++) {
        if (a[row * n + k] == 0)
            continue;
        if (b[k * n + col] < 0)
            break;
        total += a[row * n + k] * b[k * n + col];
    }
    c[row * n + col] = total;
}

extern "C" __global__ void unrolled(float *x)
{
#pragma unroll
    for (int k = 0; k < 16; k++)
        x[threadIdx.x + k * 32] *= k * 0.5f;
    asm volatile("exit;");
}
