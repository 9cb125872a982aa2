// Initialisers of every kind: partial, nested, negative, pointers to variables and strings, floats, 64 bits.
struct Inner { short a; char b; double c; };
struct Row { int id; Inner inner[2]; const char *name; const int *values; };

__device__ int counter;
__device__ int primes[10] = {2, 3, 5, 7, -11};
__device__ long long wide[3] = {-1, 1LL << 62};
__device__ float grid[2][3] = {{1.5f, -2.25f, 1e-30f}, {3.0f}};
__device__ double exact = 3.141592653589793;
__device__ signed char bytes[5] = {-1, 127, -128};
__constant__ Row rows[2] = {{1, {{-2, 'x', 0.5}, {3, 'y', -1e300}}, "first", primes},
                            {2, {{4, 'z', 0.0}}, "second\n\x01", &primes[2]}};
__device__ int *where = &primes[4];
__constant__ char text[] = "tab\t\"quote\" \\ and zero \0 within";
__managed__ int shared_with_host = 42;
__managed__ float managed_zero[4];
__device__ alignas(32) unsigned short aligned_halves[4] = {1, 65535};
static __device__ volatile int hidden = -7;

extern "C" __global__ void use_variables(int *out, int i)
{
    atomicAdd(&counter, primes[i % 10] + (int)wide[i % 3] + (int)grid[i % 2][i % 3] + bytes[i % 5] + hidden);
    out[i] = rows[i & 1].inner[i & 1].a + rows[i & 1].name[i & 3] + rows[i & 1].values[0] + *where + text[i & 15];
    shared_with_host += (int)exact + aligned_halves[i & 3];
    managed_zero[i & 3] += 1.0f;
}
