// Convolution of x [B, C, H, W] with weight [OC, C, K, K], batch normalisation by stored statistics, SiLU; to
// out [B, OC, OH, OW]. Launch: grid cdiv(B * OC * OH * OW, 128), block 128; one element per thread.

constexpr int BLOCK = 128;

extern "C" __global__ void __launch_bounds__(BLOCK)
conv_bn_silu(const float *x, const float *weight, const float *gamma, const float *beta, const float *mean,
             const float *var, float *out, float eps, int B, int C, int H, int W, int OC, int K, int OH, int OW,
             int stride, int padding)
{
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= B * OC * OH * OW)
        return;
    const int ow = i % OW;
    const int oh = i / OW % OH;
    const int oc = i / (OW * OH) % OC;
    const int b = i / (OW * OH * OC);

    float total = 0.0f;
    for (int c = 0; c < C; ++c)
        for (int kh = 0; kh < K; ++kh)
            for (int kw = 0; kw < K; ++kw) {
                const int h = oh * stride + kh - padding;
                const int w = ow * stride + kw - padding;
                if (h >= 0 && h < H && w >= 0 && w < W)
                    total += x[((b * C + c) * H + h) * W + w] * weight[((oc * C + c) * K + kh) * K + kw];
            }
    const float normed = (total - mean[oc]) * (gamma[oc] / sqrtf(var[oc] + eps)) + beta[oc];
    out[i] = normed / (1.0f + expf(-normed));
}
