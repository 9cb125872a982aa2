// Bilinear enlargement of images stored channels last, with the block's shape fixed by the kernel.
// targets: sm_90
#include <cuda_fp16.h>

struct Image {
    const __half *data;
    int height, width, channels;
};

extern "C" __global__ void __block_size__((16, 8, 1))
upsample_bilinear(Image src, __half *dst, int out_height, int out_width, float scale_y, float scale_x, int align_corners)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int b = blockIdx.z;
    if (x >= out_width || y >= out_height)
        return;
    float fy = align_corners ? y * scale_y : fmaxf((y + 0.5f) * scale_y - 0.5f, 0.0f);
    float fx = align_corners ? x * scale_x : fmaxf((x + 0.5f) * scale_x - 0.5f, 0.0f);
    int y0 = min((int)fy, src.height - 1), x0 = min((int)fx, src.width - 1);
    int y1 = min(y0 + 1, src.height - 1), x1 = min(x0 + 1, src.width - 1);
    float wy = fy - y0, wx = fx - x0;
    const __half *image = src.data + (long long)b * src.height * src.width * src.channels;
    for (int c = 0; c < src.channels; ++c) {
        float top = __half2float(image[(y0 * src.width + x0) * src.channels + c]) * (1 - wx)
                    + __half2float(image[(y0 * src.width + x1) * src.channels + c]) * wx;
        float bottom = __half2float(image[(y1 * src.width + x0) * src.channels + c]) * (1 - wx)
                       + __half2float(image[(y1 * src.width + x1) * src.channels + c]) * wx;
        dst[(((long long)b * out_height + y) * out_width + x) * src.channels + c] = __float2half(top * (1 - wy) + bottom * wy);
    }
}
