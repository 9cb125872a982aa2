// C = alpha A B + beta C for a batch: BLAS-like leading dimensions and batch strides, B transposed or not.
struct GemmShape {
    int m, n, k;
    int lda, ldb, ldc;
    long long stride_a, stride_b, stride_c;
};

template <bool TRANSPOSED_B>
__global__ void __launch_bounds__(256) bgemm(const float *a, const float *b, float *c, GemmShape s, float alpha, float beta)
{
    __shared__ float as[16][16];
    __shared__ float bs[16][17];
    int row = blockIdx.y * 16 + threadIdx.y;
    int col = blockIdx.x * 16 + threadIdx.x;
    a += blockIdx.z * s.stride_a;
    b += blockIdx.z * s.stride_b;
    c += blockIdx.z * s.stride_c;
    float acc = 0.0f;
    for (int k0 = 0; k0 < s.k; k0 += 16) {
        int ka = k0 + threadIdx.x, kb = k0 + threadIdx.y;
        as[threadIdx.y][threadIdx.x] = row < s.m && ka < s.k ? a[(long long)row * s.lda + ka] : 0.0f;
        float vb = 0.0f;
        if (col < s.n && kb < s.k)
            vb = TRANSPOSED_B ? b[(long long)col * s.ldb + kb] : b[(long long)kb * s.ldb + col];
        bs[threadIdx.y][threadIdx.x] = vb;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k)
            acc = fmaf(as[threadIdx.y][k], bs[k][threadIdx.x], acc);
        __syncthreads();
    }
    if (row >= s.m || col >= s.n)
        return;
    float *p = c + (long long)row * s.ldc + col;
    *p = beta == 0.0f ? alpha * acc : alpha * acc + beta * *p;
}

template __global__ void bgemm<false>(const float *, const float *, float *, GemmShape, float, float);
template __global__ void bgemm<true>(const float *, const float *, float *, GemmShape, float, float);
