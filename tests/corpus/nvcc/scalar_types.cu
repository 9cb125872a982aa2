// Every scalar type as a parameter and as memory.
extern "C" __global__ void every_scalar(bool a, signed char b, unsigned char c, short d, unsigned short e, int f,
                                        unsigned g, long long h, unsigned long long i, float j, double k, void *out)
{
    *(double *)out = a + b + c + d + e + f + g + (double)h + (double)i + j + k;
}

extern "C" __global__ void widths(const signed char *b, const unsigned short *s, const long long *l, int *out)
{
    int t = threadIdx.x;
    out[t] = b[t] + s[t] + (int)l[t];
}

extern "C" __global__ void no_parameters() {}
