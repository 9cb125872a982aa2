// Concatenation of images [B, C_k, H, W] along their channels, one launch per input. An input's channels are next to
// each other in either tensor, so that an image of it is one run of C_k * H * W elements.
// Launch: grid cdiv(elements of the input, 256), block 256.

constexpr int BLOCK = 256;

// Where element i of an input of `channels` channels lies in the whole, which has it from channel `first` on.
__device__ long long place(int i, int channels, int channels_of_all, int first, int plane)
{
    const int run = channels * plane;
    return static_cast<long long>(i / run) * channels_of_all * plane + first * plane + i % run;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
channel_cat(const float *part, float *all, int n, int channels, int channels_of_all, int first, int plane)
{
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        all[place(i, channels, channels_of_all, first, plane)] = part[i];
}

extern "C" __global__ void __launch_bounds__(BLOCK)
channel_cat_backward(float *grad_part, const float *grad_all, int n, int channels, int channels_of_all, int first,
                     int plane)
{
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        grad_part[i] = grad_all[place(i, channels, channels_of_all, first, plane)];
}
