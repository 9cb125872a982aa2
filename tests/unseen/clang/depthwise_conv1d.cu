// Causal depthwise convolution along time with a state: taps in constant-size local arrays, bf16 by bits.
#include "gpu.h"

DEVICE static float widen(unsigned short bits) { return __builtin_bit_cast(float, (unsigned)bits << 16); }
DEVICE static unsigned short narrow(float v)
{
    unsigned bits = __builtin_bit_cast(unsigned, v);
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

template <int TAPS> GLOBAL void depthwise_conv1d(const unsigned short *x, const float *w, const float *bias,
                                                 unsigned short *y, float *last_state, int channels, int time)
{
    int channel = block_x() * width_x() + thread_x();
    if (channel >= channels)
        return;
    float window[TAPS], taps[TAPS];
    for (int k = 0; k < TAPS; ++k) {
        window[k] = 0;
        taps[k] = w[channel * TAPS + k];
    }
    long batch = block_y();
    float b = bias ? bias[channel] : 0.0f;
    for (int t = 0; t < time; ++t) {
        for (int k = 0; k + 1 < TAPS; ++k)
            window[k] = window[k + 1];
        window[TAPS - 1] = widen(x[(batch * time + t) * channels + channel]);
        float sum = b;
        for (int k = 0; k < TAPS; ++k)
            sum += window[k] * taps[k];
        y[(batch * time + t) * channels + channel] = narrow(sum);
    }
    if (!last_state)
        return;
    for (int k = 0; k < TAPS; ++k)
        last_state[(batch * channels + channel) * TAPS + k] = window[k];
}

template GLOBAL void depthwise_conv1d<4>(const unsigned short *, const float *, const float *, unsigned short *, float *, int,
                                         int);
