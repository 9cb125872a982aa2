// Histogram of bytes, by blocks in dynamic shared memory, then added to the global one.
typedef unsigned char uchar;

extern "C" __global__ void byte_histogram(const uchar *data, unsigned long long n, int *hist, int bins, int shift)
{
    extern __shared__ int local_hist[];
    for (int b = threadIdx.x; b < bins; b += blockDim.x)
        local_hist[b] = 0;
    __syncthreads();
    unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < n; i += stride) {
        int b = data[i] >> shift;
        if (b < bins)
            atomicAdd(&local_hist[b], 1);
    }
    __syncthreads();
    for (int b = threadIdx.x; b < bins; b += blockDim.x)
        if (local_hist[b] != 0)
            atomicAdd(&hist[b], local_hist[b]);
}
