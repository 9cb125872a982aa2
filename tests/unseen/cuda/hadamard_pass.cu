// One pass of the fast Walsh-Hadamard transform in place; the host launches one for each power of two.
extern "C" __global__ void hadamard_pass(double *data, unsigned half_n, unsigned stride, double norm)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= half_n)
        return;
    double *row = data + (size_t)blockIdx.y * 2 * half_n;
    unsigned i = t / stride * stride * 2 + t % stride;
    double a = row[i], b = row[i + stride];
    row[i] = (a + b) * norm;
    row[i + stride] = (a - b) * norm;
}
