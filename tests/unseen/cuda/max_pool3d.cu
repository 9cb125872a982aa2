// Max pooling of volumes with the flat index of the maximum, compiled for the debugger.
// flags: -G
extern "C" __global__ void max_pool3d(const float *input, float *output, long long *indices, int channels, int depth,
                                      int height, int width, int out_d, int out_h, int out_w, int kernel, int stride)
{
    int ow = blockIdx.x * blockDim.x + threadIdx.x;
    int oh = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    int od = z % out_d;
    int channel = z / out_d;
    if (ow >= out_w || oh >= out_h || channel >= channels)
        return;
    const float *volume = input + (long long)channel * depth * height * width;
    float best = -INFINITY;
    long long at = -1;
    for (int d = od * stride; d < min(od * stride + kernel, depth); ++d)
        for (int h = oh * stride; h < min(oh * stride + kernel, height); ++h)
            for (int w = ow * stride; w < min(ow * stride + kernel, width); ++w) {
                long long i = ((long long)d * height + h) * width + w;
                if (volume[i] > best) {
                    best = volume[i];
                    at = i;
                }
            }
    long long o = (((long long)channel * out_d + od) * out_h + oh) * out_w + ow;
    output[o] = best;
    indices[o] = at;
}
