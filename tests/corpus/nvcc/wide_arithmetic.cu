// 64-bit and 128-bit integers, carries, high products, division, double precision.
extern "C" __global__ void integers(const long long *x, unsigned long long *y, int n)
{
    long long a = x[0], b = x[1];
    unsigned long long hi = __umul64hi(a, b), q = (unsigned long long)a / (b | 1), r = a % (b | 1);
    __int128 wide = (__int128)a * b + x[2];
    wide = (wide << 7) - a;
    y[0] = hi + q + r + __mul64hi(a, b) + (unsigned long long)(wide >> 64) + (unsigned long long)wide;
    y[1] = a / 7 + b % 1000000007LL + (long long)n * n + llabs(a) + max(a, b) + (a >> (n & 63));
    unsigned c0, c1;
    asm("add.cc.u32 %0, %2, %3;\n\taddc.u32 %1, 0, 0;\n\tmad.lo.cc.u32 %0, %0, %2, %3;\n\tmadc.hi.u32 %1, %0, %2, %1;\n\t"
        "sub.cc.u32 %0, %0, %3;\n\tsubc.u32 %1, %1, 0;" : "=r"(c0), "=r"(c1) : "r"(n), "r"(n + 1));
    y[2] = c0 + c1;
}

extern "C" __global__ void doubles(const double *x, double *y)
{
    double a = x[0], b = x[1];
    y[0] = __dadd_rz(a, b) + __dmul_ru(a, b) + __dsqrt_rd(a) + __ddiv_rn(a, b) + fma(a, b, 1.0) + rint(a) + trunc(b);
    y[1] = exp(a) + sin(b) + pow(a, b) + rcbrt(a) + fmin(a, b) + copysign(a, b) + (double)(long long)a + (float)b;
    y[2] = __hiloint2double(__double2hiint(a), __double2loint(b)) + __longlong_as_double(__double_as_longlong(a) + 1);
    y[3] = isnan(a) + isinf(b) + signbit(a);
}
