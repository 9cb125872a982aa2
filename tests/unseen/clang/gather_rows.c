// Rows of a table by index, negative ones counted from the end, those out of range zero. Plain C.
// targets: sm_75
typedef __attribute__((ext_vector_type(2))) double Two;

__attribute__((nvptx_kernel)) void gather_rows(double *restrict out, const double *restrict table,
                                               const long *restrict index, int rows, int columns, int count)
{
    int r = __nvvm_read_ptx_sreg_ctaid_y() * __nvvm_read_ptx_sreg_ntid_y() + __nvvm_read_ptx_sreg_tid_y();
    int pair = __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
    if (r >= count || pair * 2 >= columns)
        return;
    long from = index[r];
    if (from < 0)
        from += rows;
    Two value = 0;
    if (from >= 0 && from < rows)
        value = *(const Two *)(table + from * columns + pair * 2);
    *(Two *)(out + (long)r * columns + pair * 2) = value;
}
