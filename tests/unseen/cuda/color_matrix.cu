// A colour matrix over packed RGBA bytes, its rows and the exposure being small types by value.
#include <cuda_fp16.h>

__device__ unsigned char to_byte(float v) { return (unsigned char)__float2uint_rn(__saturatef(v) * 255.0f); }

__global__ void color_matrix(uchar4 *__restrict__ pixels, unsigned short width, unsigned short height, int pitch_in_bytes,
                             float4 r, float4 g, float4 b, __half exposure)
{
    unsigned short x = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned short y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    uchar4 *pixel = (uchar4 *)((char *)pixels + (size_t)y * pitch_in_bytes) + x;
    uchar4 p = *pixel;
    float e = __half2float(exposure) / 255.0f;
    float red = p.x * e, green = p.y * e, blue = p.z * e;
    p.x = to_byte(r.x * red + r.y * green + r.z * blue + r.w);
    p.y = to_byte(g.x * red + g.y * green + g.z * blue + g.w);
    p.z = to_byte(b.x * red + b.y * green + b.z * blue + b.w);
    *pixel = p;
}
