// A debug build: `.target …, debug`, DWARF sections, unoptimised code.
// flags: -G
struct Vec { float x, y; };

__device__ float dot(Vec a, Vec b) { return a.x * b.x + a.y * b.y; }

extern "C" __global__ void lengths(const Vec *v, float *out, int n)
{
    __shared__ float stage[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        stage[threadIdx.x & 31] = dot(v[i], v[i]);
        out[i] = stage[threadIdx.x & 31];
    }
}
