// Single precision: approximate and exact functions, rounding modes, conversions, flushing.
// flags: -ftz=true -prec-div=false -prec-sqrt=false -fmad=false
extern "C" __global__ void floats(const float *x, float *y, int *z)
{
    float a = x[0], b = x[1];
    y[0] = a / b + sqrtf(a) + __fdividef(a, b) + rsqrtf(b) + __frcp_rn(a) + __fsqrt_ru(b) + __fmaf_rz(a, b, a);
    y[1] = __sinf(a) + __cosf(b) + __log2f(a) + exp2f(b) + __tanf(a) + tanhf(a) + __powf(a, b) + __saturatef(a);
    y[2] = sinf(a) + cosf(b) + logf(a) + expf(b) + erff(a) + tgammaf(b) + fmodf(a, b) + cbrtf(a);
    y[3] = floorf(a) + ceilf(b) + rintf(a) + truncf(b) + fabsf(a) + fminf(a, b) + fmaxf(a, b) + (float)z[9];
    z[0] = __float2int_rn(a) + __float2int_rd(b) + (int)a + (unsigned)b + __float_as_int(a) + (short)a + (unsigned char)b;
}
