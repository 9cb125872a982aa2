// nanosleep, clocks, timers and other special registers.
extern "C" __global__ void registers(unsigned long long *out)
{
    unsigned long long timer, stamp = clock64();
    unsigned lane, warp, nwarp, sm, nsm, grid, lt, le, eq, ge, gt, smem, dyn;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(timer));
    asm("mov.u32 %0, %%laneid; mov.u32 %1, %%warpid; mov.u32 %2, %%nwarpid;" : "=r"(lane), "=r"(warp), "=r"(nwarp));
    asm("mov.u32 %0, %%smid; mov.u32 %1, %%nsmid; mov.u32 %2, %%gridid;" : "=r"(sm), "=r"(nsm), "=r"(grid));
    asm("mov.u32 %0, %%lanemask_lt; mov.u32 %1, %%lanemask_le; mov.u32 %2, %%lanemask_eq;" : "=r"(lt), "=r"(le), "=r"(eq));
    asm("mov.u32 %0, %%lanemask_ge; mov.u32 %1, %%lanemask_gt;" : "=r"(ge), "=r"(gt));
    asm("mov.u32 %0, %%total_smem_size; mov.u32 %1, %%dynamic_smem_size;" : "=r"(smem), "=r"(dyn));
    __nanosleep(200);
    __threadfence();
    __threadfence_block();
    __threadfence_system();
    out[0] = timer + stamp + lane + warp + nwarp + sm + nsm + grid + lt + le + eq + ge + gt + smem + dyn + clock();
    if (timer == 0)
        __trap();
    __brkpt();
}
