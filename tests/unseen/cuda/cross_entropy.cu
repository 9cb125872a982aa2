// Cross entropy of logits against labels, with an index to ignore; the gradient replaces the logits.
extern "C" __global__ void cross_entropy(float *logits, const long long *labels, float *losses, float *total, int *counted,
                                         int vocab, long long ignore_index, float smoothing)
{
    __shared__ float red[128];
    int tid = threadIdx.x;
    float *row = logits + (long long)blockIdx.x * vocab;
    long long label = labels[blockIdx.x];
    if (label == ignore_index) {
        for (int i = tid; i < vocab; i += blockDim.x)
            row[i] = 0.0f;
        if (tid == 0)
            losses[blockIdx.x] = 0.0f;
        return;
    }
    float m = -3.402823466e+38f, sum_x = 0.0f;
    for (int i = tid; i < vocab; i += blockDim.x) {
        m = fmaxf(m, row[i]);
        sum_x += row[i];
    }
    red[tid] = m;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s)
            red[tid] = fmaxf(red[tid], red[tid + s]);
        __syncthreads();
    }
    m = red[0];
    __syncthreads();
    float z = 0.0f;
    for (int i = tid; i < vocab; i += blockDim.x)
        z += __expf(row[i] - m);
    red[tid] = z;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s)
            red[tid] += red[tid + s];
        __syncthreads();
    }
    z = red[0];
    __syncthreads();
    red[tid] = sum_x;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s)
            red[tid] += red[tid + s];
        __syncthreads();
    }
    float log_z = m + logf(z);
    if (tid == 0) {
        float loss = (1.0f - smoothing) * (log_z - row[label]) + smoothing * (log_z - red[0] / vocab);
        losses[blockIdx.x] = loss;
        atomicAdd(total, loss);
        atomicAdd(counted, 1);
    }
    __syncthreads();
    for (int i = tid; i < vocab; i += blockDim.x) {
        float target = (i == label ? 1.0f - smoothing : 0.0f) + smoothing / vocab;
        row[i] = __expf(row[i] - log_z) - target;
    }
}
