// What a kernel does with its parameters, by way of functions that are not inlined, structs and memory of its own.
struct Rows { float* out; const float* in; int count; float scale; long long stride; };
struct Pair { int bias; float factor; };

__noinline__ __device__ float* at(float* base, int index) { return base + index; }
__noinline__ __device__ float get(const float* from, int index) { return from[index]; }
__noinline__ __device__ void put(float* to, int index, float value) { to[index] = value; }
__noinline__ __device__ float row(Rows rows, int index) { return rows.in[index * rows.stride] * rows.scale; }
__noinline__ __device__ void choose(float** slot, float* value) { *slot = value; }
__noinline__ __device__ int fill(int left, float* out) {
    if (left <= 0) return 0;
    out[left] = 1;
    return fill(left - 1, out) + 1;
}

extern "C" __global__ void by_calls(float* x, float* y, float* z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    *at(x, i) = *at(y, i) + get(y, i + 1);
    put(z, i, 2.0f);
}

extern "C" __global__ void by_struct(Rows rows, Pair pair, int period) {
    for (int k = threadIdx.x; k < rows.count; k += 32)
        rows.out[k * rows.stride] = row(rows, k) + pair.factor * (k % period) + pair.bias;
}

extern "C" __global__ void by_recursion(float* x, int n) { *x = fill(n, x); }

extern "C" __global__ void by_address(float* x, float* y) {
    float* slot;
    choose(&slot, x);
    slot[threadIdx.x] = y[threadIdx.x];
}

extern "C" __global__ void by_table(float* a, float* b, const float* c, int pick) {
    float* table[2] = {a, b};
    table[pick][threadIdx.x] = *c;
}

extern "C" __global__ void by_shared(float* x, const float* y, int n) {
    __shared__ float* base;
    __shared__ int bound;
    if (threadIdx.x == 0) {
        base = x;
        bound = n;
    }
    __syncthreads();
    if ((int)threadIdx.x < bound) base[threadIdx.x] = *y;
}
