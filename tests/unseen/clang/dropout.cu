// Inverted dropout by a counter-based generator; the mask is kept for the backward. Unoptimised.
// flags: -O0
#include "gpu.h"

typedef unsigned int u32;
typedef unsigned long long u64;

DEVICE static u32 mix(u64 z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (u32)((z ^ (z >> 31)) >> 32);
}

extern "C" GLOBAL void dropout(const float *x, float *y, bool *mask, u64 n, float p, u64 seed)
{
    u64 i = (u64)block_x() * width_x() + thread_x();
    if (i >= n)
        return;
    float uniform = (float)(mix(seed + i * 0x9e3779b97f4a7c15ull) >> 8) * 5.9604644775390625e-08f;
    bool keep = uniform >= p;
    mask[i] = keep;
    y[i] = keep ? x[i] / (1.0f - p) : 0.0f;
}
