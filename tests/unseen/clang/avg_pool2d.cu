// Average pooling of images [N, C, H, W], with or without the padding in the count.
#include "gpu.h"

DEVICE static int least(int a, int b) { return a < b ? a : b; }
DEVICE static int most(int a, int b) { return a > b ? a : b; }

template <typename T, typename Acc>
GLOBAL void avg_pool2d(const T *in, T *out, int planes, int height, int width, int out_h, int out_w, int kernel, int stride,
                       int pad, bool count_padding)
{
    int index = block_x() * width_x() + thread_x();
    if (index >= planes * out_h * out_w)
        return;
    int ow = index % out_w, oh = index / out_w % out_h, plane = index / out_w / out_h;
    int h0 = oh * stride - pad, w0 = ow * stride - pad;
    int h1 = least(h0 + kernel, height + pad), w1 = least(w0 + kernel, width + pad);
    int padded = (h1 - h0) * (w1 - w0);
    h0 = most(h0, 0), w0 = most(w0, 0), h1 = least(h1, height), w1 = least(w1, width);
    Acc total = 0;
    const T *from = in + (long)plane * height * width;
    for (int h = h0; h < h1; ++h)
        for (int w = w0; w < w1; ++w)
            total += from[h * width + w];
    out[index] = (T)(total / (Acc)(count_padding ? padded : (h1 - h0) * (w1 - w0)));
}

template GLOBAL void avg_pool2d<_Float16, float>(const _Float16 *, _Float16 *, int, int, int, int, int, int, int, int, bool);
template GLOBAL void avg_pool2d<double, double>(const double *, double *, int, int, int, int, int, int, int, int, bool);
