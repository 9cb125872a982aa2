// Scopes with registers of their own, names without %, labels that occur twice, comments, volatile text.
__device__ __forceinline__ void wait_until(volatile int *flag, int value)
{
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 ".reg .b32 t<3>;\n\t"
                 "waitLoop:\n\t"
                 "ld.volatile.u32 t0, [%0];   // spins\n\t"
                 "setp.ne.s32 p, t0, %1;\n\t"
                 "@p bra waitLoop;\n\t"
                 "}" ::"l"(flag), "r"(value) : "memory");
}

extern "C" __global__ void spin(volatile int *flags, int *out)
{
    wait_until(flags, 1);
    wait_until(flags + 1, 2);
    int r;
    asm("{ .reg .u32 %%r1; /* shadows an outer register */ mov.u32 %%r1, 0x7772U; add.u32 %0, %%r1, %1; }" : "=r"(r) : "r"(out[0]));
    unsigned lo, hi;
    asm("{ .reg .b64 complete; .reg .pred q, r_2$; mov.b64 complete, {%2, %3}; mov.b64 {%0, %1}, complete; }"
        : "=r"(lo), "=r"(hi) : "r"(r), "r"(r + 1));
    int picked;
    asm("{\n .reg .pred %%p<2>;\n setp.gt.s32 %%p0|%%p1, %1, 3;\n @!%%p1 mov.s32 %0, -5;\n @%%p1 mov.s32 %0, 5;\n}"
        : "=r"(picked) : "r"(r));
    asm volatile("membar.gl;" ::: "memory");
    out[0] = lo + hi + picked;
}
