// Warp-group matrix multiplication, register reallocation, elect.sync, stmatrix.
// targets: sm_90a
extern "C" __global__ void __launch_bounds__(256, 1) group_multiply(unsigned long long a, unsigned long long b, float *c)
{
    if (threadIdx.x >= 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    float d[8] = {};
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %10, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3,\n %4, %5, %6, %7},\n %8, %9, p, 1, -1, 0, 1;\n}"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
                 : "l"(a), "l"(b), "r"(1));
    asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" ::: "memory");
    unsigned leader;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xFFFFFFFF; selp.u32 %0, 1, 0, p; }" : "=r"(leader));
    __shared__ alignas(16) unsigned tile[512];
    unsigned at = (unsigned)__cvta_generic_to_shared(&tile[threadIdx.x * 4]);
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(at), "r"(leader), "r"(at));
    c[threadIdx.x] = d[0] + d[7] + tile[threadIdx.x];
}
