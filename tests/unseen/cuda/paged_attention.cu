// Attention of one query a sequence over a paged cache of keys and values, with grouped heads.
#include <cuda_bf16.h>

template <int HEAD_SIZE, int PAGE>
__global__ void paged_attention(__nv_bfloat16 *__restrict__ out, const __nv_bfloat16 *__restrict__ q,
                                const __nv_bfloat16 *__restrict__ k_cache, const __nv_bfloat16 *__restrict__ v_cache,
                                const int num_kv_heads, const float scale, const int *__restrict__ block_tables,
                                const int *__restrict__ context_lens, const int max_pages,
                                const float *__restrict__ alibi_slopes)
{
    const int head = blockIdx.x, seq = blockIdx.y, lane = threadIdx.x;
    const int kv_head = head / (gridDim.x / num_kv_heads);
    const int len = context_lens[seq];
    const int *table = block_tables + seq * max_pages;
    constexpr int PER_LANE = HEAD_SIZE / 32;
    float query[PER_LANE], acc[PER_LANE];
#pragma unroll
    for (int i = 0; i < PER_LANE; ++i) {
        query[i] = __bfloat162float(q[(seq * gridDim.x + head) * HEAD_SIZE + i * 32 + lane]);
        acc[i] = 0.0f;
    }
    const float slope = alibi_slopes == nullptr ? 0.0f : alibi_slopes[head];
    float m = -INFINITY, l = 0.0f;
    for (int t = 0; t < len; ++t) {
        const size_t slot = (size_t)table[t / PAGE] * PAGE + t % PAGE;
        const size_t at = (slot * num_kv_heads + kv_head) * HEAD_SIZE;
        float dot = 0.0f;
#pragma unroll
        for (int i = 0; i < PER_LANE; ++i)
            dot += query[i] * __bfloat162float(k_cache[at + i * 32 + lane]);
#pragma unroll
        for (int mask = 16; mask > 0; mask /= 2)
            dot += __shfl_xor_sync(0xffffffff, dot, mask);
        float score = dot * scale + slope * (t - len + 1);
        float m_new = fmaxf(m, score);
        float keep = expf(m - m_new), p = expf(score - m_new);
        l = l * keep + p;
#pragma unroll
        for (int i = 0; i < PER_LANE; ++i)
            acc[i] = acc[i] * keep + p * __bfloat162float(v_cache[at + i * 32 + lane]);
        m = m_new;
    }
#pragma unroll
    for (int i = 0; i < PER_LANE; ++i)
        out[(seq * gridDim.x + head) * HEAD_SIZE + i * 32 + lane] = __float2bfloat16(acc[i] / (l + 1e-6f));
}

template __global__ void paged_attention<64, 8>(__nv_bfloat16 *, const __nv_bfloat16 *, const __nv_bfloat16 *,
                                                const __nv_bfloat16 *, int, float, const int *, const int *, int,
                                                const float *);
