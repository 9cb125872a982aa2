// alloca, local arrays indexed at run time, spilling structs through generic pointers.
struct Frame { int kind; float data[6]; };

__device__ __noinline__ void fill(Frame *f, int n)
{
    for (int i = 0; i < 6; i++)
        f->data[i] = (float)(i * n);
}

extern "C" __global__ void dynamic_stack(int n, float *out)
{
    float *scratch = (float *)alloca(n * sizeof(float));
    for (int i = 0; i < n; i++)
        scratch[i] = (float)(i * threadIdx.x);
    Frame frame;
    fill(&frame, n);
    int local[32];
    for (int i = 0; i < 32; i++)
        local[(i * n) & 31] = i;
    out[threadIdx.x] = scratch[n / 2] + frame.data[n % 6] + local[threadIdx.x & 31];
}
