// OpenCL C: the running maximum of chunks of integers in local memory, and how often each chunk's maximum occurs.
// flags: -cl-std=CL2.0
#define LOCAL_SIZE 64

__kernel __attribute__((reqd_work_group_size(LOCAL_SIZE, 1, 1)))
void local_max(__global const int *restrict x, __global int *restrict running, __global uint *restrict often, uint n)
{
    __local int chunk[LOCAL_SIZE];
    __local uint count;
    uint lid = __nvvm_read_ptx_sreg_tid_x();
    uint group = __nvvm_read_ptx_sreg_ctaid_x();
    uint i = group * LOCAL_SIZE + lid;
    int own = i < n ? x[i] : -2147483647 - 1;
    chunk[lid] = own;
    if (lid == 0)
        count = 0;
    __syncthreads();
    for (uint d = 1; d < LOCAL_SIZE; d <<= 1) {
        int other = lid >= d ? chunk[lid - d] : own;
        __syncthreads();
        if (other > chunk[lid])
            chunk[lid] = other;
        __syncthreads();
    }
    if (i < n) {
        running[i] = chunk[lid];
        if (own == chunk[LOCAL_SIZE - 1])
            __nvvm_atom_add_gen_i((__generic int *)&count, 1);
    }
    __syncthreads();
    if (lid == 0)
        often[group] = count;
}
