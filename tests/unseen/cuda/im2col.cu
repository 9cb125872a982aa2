// im2col in the manner of Caffe: a thread writes one column's kernel window; indices from divisions.
#include <cstddef>

struct Window {
    int kernel_h, kernel_w, pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w;
};

template <typename Dtype>
__global__ void im2col_gpu_kernel(const int n, const Dtype *data_im, const int height, const int width, const Window w,
                                  const int height_col, const int width_col, Dtype *data_col)
{
    for (int index = blockIdx.x * blockDim.x + threadIdx.x; index < n; index += blockDim.x * gridDim.x) {
        const int h_index = index / width_col;
        const int w_col = index % width_col;
        const int h_col = h_index % height_col;
        const int c_im = h_index / height_col;
        const int c_col = c_im * w.kernel_h * w.kernel_w;
        const int h_offset = h_col * w.stride_h - w.pad_h;
        const int w_offset = w_col * w.stride_w - w.pad_w;
        Dtype *col = data_col + ((size_t)c_col * height_col + h_col) * width_col + w_col;
        const Dtype *im = data_im + ((size_t)c_im * height) * width;
        for (int i = 0; i < w.kernel_h; ++i)
            for (int j = 0; j < w.kernel_w; ++j) {
                int h_im = h_offset + i * w.dilation_h;
                int w_im = w_offset + j * w.dilation_w;
                *col = h_im >= 0 && w_im >= 0 && h_im < height && w_im < width ? im[h_im * width + w_im] : Dtype(0);
                col += (size_t)height_col * width_col;
            }
    }
}

template __global__ void im2col_gpu_kernel<float>(int, const float *, int, int, Window, int, int, float *);
template __global__ void im2col_gpu_kernel<double>(int, const double *, int, int, Window, int, int, double *);
