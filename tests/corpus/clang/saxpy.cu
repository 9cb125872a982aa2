// What clang makes of a kernel without the toolkit's headers: its own spelling of parameters, blocks and pragmas.
#define GLOBAL __attribute__((global))
#define DEVICE __attribute__((device))
#define TID __nvvm_read_ptx_sreg_tid_x()
#define AT (__nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + TID)

extern "C" GLOBAL void saxpy(int n, float alpha, const float *x, float *y)
{
    int i = AT;
    if (i < n)
        y[i] = alpha * x[i] + y[i];
}

extern "C" GLOBAL __attribute__((launch_bounds(128, 2))) void blocks_of_sums(const double *x, double *sums, int n)
{
    static __attribute__((shared)) double part[128];
    double total = 0;
#pragma nounroll
    for (int i = AT; i < n; i += 4096)
        total += x[i];
    part[TID] = total;
    for (int half = 64; half > 0; half /= 2) {
        __syncthreads();
        if (TID < half)
            part[TID] += part[TID + half];
    }
    if (TID == 0)
        sums[__nvvm_read_ptx_sreg_ctaid_x()] = part[0];
}
