// tcgen05 and tensor memory, packed f32x2, 256-bit loads, for sm_100a.
// targets: sm_100a
extern "C" __global__ void tensor_memory(unsigned long long a, unsigned long long b, float *c, unsigned idesc)
{
    __shared__ unsigned slot;
    __shared__ alignas(8) unsigned long long barrier;
    unsigned at = (unsigned)__cvta_generic_to_shared(&slot), bar = (unsigned)__cvta_generic_to_shared(&barrier);
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 64;" ::"r"(at));
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    __syncthreads();
    unsigned tmem = slot;
    asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0;\n\t"
                 "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n\t"
                 "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%4]; }"
                 ::"r"(tmem), "l"(a), "l"(b), "r"(idesc), "r"(bar) : "memory");
    unsigned r0, r1, r2, r3;
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0, %1, %2, %3}, [%4 + 0];\n\ttcgen05.wait::ld.sync.aligned;"
                 : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(tmem));
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 64;" ::"r"(tmem));
    unsigned long long x, y;
    asm("mov.b64 %0, {%2, %3};\n\tfma.rn.f32x2 %1, %0, %0, %0;\n\tadd.rn.ftz.f32x2 %1, %1, %0;" : "=l"(x), "=l"(y) : "r"(r0), "r"(r1));
    asm volatile("ld.global.v8.f32 {%0, _, _, _, _, _, _, %1}, [%2];" : "=r"(r0), "=r"(r1) : "l"(c));
    c[threadIdx.x] = __uint_as_float(r0 ^ r1 ^ r2 ^ r3 ^ (unsigned)y);
}
