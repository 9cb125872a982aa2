// wmma from the header; mma.sync and ldmatrix as inline assembly.
// targets: sm_75 sm_80
#include <cuda_fp16.h>
#include <mma.h>

extern "C" __global__ void wmma_tile(const __half *a, const __half *b, float *c)
{
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, __half, row_major> fa;
    fragment<matrix_b, 16, 16, 16, __half, col_major> fb;
    fragment<accumulator, 16, 16, 16, float> fc;
    fill_fragment(fc, 0.0f);
    load_matrix_sync(fa, a, 16);
    load_matrix_sync(fb, b, 16);
    mma_sync(fc, fa, fb, fc);
    store_matrix_sync(c, fc, 16, mem_row_major);
}

extern "C" __global__ void mma_tile(const unsigned *a, float4 *c)
{
    __shared__ alignas(16) unsigned tile[32 * 4];
    unsigned t = threadIdx.x, r0, r1, r2, r3;
    tile[t] = a[t];
    __syncthreads();
    unsigned at = (unsigned)__cvta_generic_to_shared(&tile[t * 4]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at));
    float4 d = c[t];
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(d.x), "+f"(d.y), "+f"(d.z), "+f"(d.w) : "r"(r0), "r"(r1), "r"(r2));
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%4,%5}, {%0,%1,%2,%3};"
                 : "+f"(d.x), "+f"(d.y), "+f"(d.z), "+f"(d.w) : "r"(r0), "r"(r1), "r"(r2), "r"(r3));
    asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%0,%1,%2,%3}, {%0,%1,%2,%3}, {%0,%1}, {%0,%1,%2,%3};"
                 : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3));
    d.x += (float)r0;
#endif
    c[t] = d;
}
