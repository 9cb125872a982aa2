// A kernel of some 2,000 instructions and many branches on data, for what compilation takes.

// One of many steps of an arithmetic that goes another way in each thread; table has 256 words.
template <int K> __device__ __forceinline__ void step(unsigned &a, unsigned &b, unsigned *table)
{
    if (a & 1u << K % 31) {
        const unsigned word = table[b & 255];
        if (word > a) {
            table[a & 255] = a ^ b;
            b = b * 1664525u + word;
        } else {
            a += __popc(word) * (2 * K + 1);
        }
    } else if (b % (K + 3) == 1) {
        for (unsigned rounds = a & 7; rounds; --rounds)
            b = b << 3 ^ table[(b + rounds) & 255];
        a -= b;
    } else {
        a = a * 22695477u + b + K;
    }
}

template <int K> __device__ __forceinline__ void steps(unsigned &a, unsigned &b, unsigned *table)
{
    if constexpr (K > 0) {
        steps<K - 1>(a, b, table);
        step<K>(a, b, table);
    }
}

// A thread an element of x and out; each has its own 256 words of table.
extern "C" __global__ void branchy(const unsigned *x, unsigned *table, unsigned *out)
{
    const int i = threadIdx.x;
    unsigned a = x[i], b = i;
    steps<38>(a, b, table + 256 * i);
    out[i] = a ^ b;
}
