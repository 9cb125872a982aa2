// y = x w^T + b with x [M, K], w [N, K] and b [N] or null, and what its gradients are made of.
// Launch: grid cdiv(N, 16) x cdiv(M, 16), block 16 x 16; one element of the result per thread.
// A stride named x_m counts elements from one row m of x to the next.

constexpr int TILE = 16;

struct Sums {
    float product;  // sum of a[m, k] * b[n, k] over k
    float a;        // sum of a[m, k] over k
};

// The sums of this thread's m and n, tile by tile through shared memory.
__device__ Sums sum_over_k(const float *a, const float *b, int M, int N, int K, long long a_m, long long a_k,
                           long long b_n, long long b_k)
{
    __shared__ float a_tile[TILE][TILE + 1];  // one column more, so that a column's elements lie in different banks
    __shared__ float b_tile[TILE][TILE + 1];
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int m = blockIdx.y * TILE + ty;
    const int n = blockIdx.x * TILE + ty;  // of the element of b that this thread fetches
    Sums sums = {0.0f, 0.0f};
    for (int first = 0; first < K; first += TILE) {
        const int k = first + tx;
        a_tile[ty][tx] = m < M && k < K ? a[m * a_m + k * a_k] : 0.0f;
        b_tile[ty][tx] = n < N && k < K ? b[n * b_n + k * b_k] : 0.0f;
        __syncthreads();
        for (int j = 0; j < TILE; ++j) {
            sums.product += a_tile[ty][j] * b_tile[tx][j];
            sums.a += a_tile[ty][j];
        }
        __syncthreads();
    }
    return sums;
}

extern "C" __global__ void __launch_bounds__(TILE * TILE)
linear(const float *x, const float *w, const float *b, float *y, int M, int N, int K, int x_m, int x_k, int w_n,
       int w_k, int y_m, int y_n)
{
    const Sums sums = sum_over_k(x, w, M, N, K, x_m, x_k, w_n, w_k);
    const int m = blockIdx.y * TILE + threadIdx.y;
    const int n = blockIdx.x * TILE + threadIdx.x;
    if (m < M && n < N)
        y[static_cast<long long>(m) * y_m + static_cast<long long>(n) * y_n] = sums.product + (b ? b[n] : 0.0f);
}

// product [M, N] = a b^T, and the row sums [M] of a unless null. With g the gradient of y [M, N], the gradient of x is
// g (w^T)^T, that of w is g^T (x^T)^T, and the row sums of g^T are that of b: a transpose is its strides exchanged.
extern "C" __global__ void __launch_bounds__(TILE * TILE)
linear_backward(const float *a, const float *b, float *product, float *row_sums, int M, int N, int K, int a_m,
                int a_k, int b_n, int b_k, int product_m, int product_n)
{
    const Sums sums = sum_over_k(a, b, M, N, K, a_m, a_k, b_n, b_k);
    const int m = blockIdx.y * TILE + threadIdx.y;
    const int n = blockIdx.x * TILE + threadIdx.x;
    if (m < M && n < N)
        product[static_cast<long long>(m) * product_m + static_cast<long long>(n) * product_n] = sums.product;
    if (row_sums && m < M && n == 0)
        row_sums[m] = sums.a;
}
