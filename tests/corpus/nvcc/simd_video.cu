// Integer intrinsics: packed bytes and halves, dot products, funnel shifts, permutes, bit fields.
extern "C" __global__ void packed(const unsigned *x, unsigned *y)
{
    int i = threadIdx.x;
    unsigned a = x[i], b = x[i + 32], c = x[i + 64];
    unsigned r = __vadd4(a, b) ^ __vsub2(a, c) ^ __vabsdiffu4(b, c) ^ __vsads2(a, b) ^ __vmaxs4(a, c) ^ __vcmpgtu2(b, c);
    r += __dp4a(a, b, c) + __dp4a((int)a, (int)b, (int)c) + __dp2a_lo((int)a, (int)b, (int)c) + __dp2a_hi(a, b, c);
    r += __funnelshift_l(a, b, c) + __funnelshift_rc(a, b, c) + __byte_perm(a, b, 0x3715);
    r += __ffs(a) + __clz(b) + __brev(c) + __popcll(((unsigned long long)a << 32) | b) + __clzll((long long)c);
    r += __sad((int)a, (int)b, c) + __usad(a, b, c) + __mulhi((int)a, (int)b) + __umul24(a, b) + __mul24((int)a, (int)b);
    r += __hadd((int)a, (int)b) + __urhadd(a, b);
    asm("bfe.s32 %0, %0, 3, 9;\n\tbfi.b32 %0, %1, %0, 8, 4;\n\tbfind.shiftamt.u32 %0, %0;" : "+r"(r) : "r"(a));
    asm("vadd.u32.u32.s32.sat %0, %1.b0, %2.h1, %0;" : "+r"(r) : "r"(a), "r"(b));
    asm("lop3.b32 %0, %1, %2, %0, 0x96;\n\tfns.b32 %0, %0, 3, 2;\n\tbmsk.clamp.b32 %0, 3, 7;" : "+r"(r) : "r"(a), "r"(b));
    asm("szext.wrap.s32 %0, %1, 7;\n\tdp2a.lo.u32.s32 %0, %1, %2, %0;" : "+r"(r) : "r"(a), "r"(b));
    y[i] = r;
}
