// One AdamW step: four tensors, three of them updated in place, a step counter on the device, optional clipping.
struct AdamConfig {
    float lr, beta1, beta2, eps, weight_decay;
};

__global__ void adamw_step(float *__restrict__ param, const float *__restrict__ grad, float *__restrict__ m,
                           float *__restrict__ v, size_t n, AdamConfig config, int step, const float *grad_scale)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float g = grad[i];
    if (grad_scale != nullptr)
        g *= *grad_scale;
    float mi = config.beta1 * m[i] + (1.0f - config.beta1) * g;
    float vi = config.beta2 * v[i] + (1.0f - config.beta2) * g * g;
    m[i] = mi;
    v[i] = vi;
    float m_hat = mi / (1.0f - powf(config.beta1, step));
    float v_hat = vi / (1.0f - powf(config.beta2, step));
    param[i] -= config.lr * (m_hat / (sqrtf(v_hat) + config.eps) + config.weight_decay * param[i]);
}
