// Dynamic and static shared memory, in kernels, in device functions, in several types.
extern __shared__ float dynamic[];

__device__ __noinline__ int in_function(int i)
{
    __shared__ int cells[64];
    cells[i & 63] = i;
    __syncthreads();
    return cells[(i + 1) & 63];
}

extern "C" __global__ void only_dynamic(float *x)
{
    dynamic[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = dynamic[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void both(float *x)
{
    __shared__ double tile[16][17];
    __shared__ alignas(128) char raw[256];
    __shared__ struct { int head; short tail; } queue;
    int t = threadIdx.x;
    if (t == 0)
        queue = {1, 2};
    tile[t & 15][t >> 4 & 15] = x[t];
    raw[t & 255] = (char)t;
    dynamic[t] = x[t];
    __syncthreads();
    x[t] = (float)tile[t >> 4 & 15][t & 15] + raw[(t + 1) & 255] + dynamic[t ^ 1] + queue.head + queue.tail + in_function(t);
}

extern "C" __global__ void only_static(int *x) { x[threadIdx.x] = in_function(x[threadIdx.x]); }
