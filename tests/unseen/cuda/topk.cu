// The k largest of each row with their places, by a bitonic sort of one power of two in dynamic shared memory.
struct Pair {
    float value;
    int index;
};

__device__ bool before(const Pair &a, const Pair &b)
{
    return a.value > b.value || (a.value == b.value && a.index < b.index);
}

extern "C" __global__ void topk(const float *x, float *values, int *indices, int cols, int padded, int k)
{
    extern __shared__ __align__(8) unsigned char raw[];
    Pair *pairs = reinterpret_cast<Pair *>(raw);
    const float *row = x + (size_t)blockIdx.x * cols;
    for (int i = threadIdx.x; i < padded; i += blockDim.x) {
        pairs[i].value = i < cols ? row[i] : -INFINITY;
        pairs[i].index = i;
    }
    for (int size = 2; size <= padded; size <<= 1)
        for (int stride = size >> 1; stride > 0; stride >>= 1) {
            __syncthreads();
            for (int i = threadIdx.x; i < padded; i += blockDim.x) {
                int j = i ^ stride;
                if (j > i) {
                    bool descending = (i & size) == 0;
                    if (before(pairs[j], pairs[i]) == descending) {
                        Pair t = pairs[i];
                        pairs[i] = pairs[j];
                        pairs[j] = t;
                    }
                }
            }
        }
    __syncthreads();
    for (int i = threadIdx.x; i < k; i += blockDim.x) {
        values[(size_t)blockIdx.x * k + i] = pairs[i].value;
        indices[(size_t)blockIdx.x * k + i] = pairs[i].index;
    }
}
