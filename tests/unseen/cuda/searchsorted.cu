// Binary search of doubles in a sorted sequence, left or right, unoptimised.
// flags: -Xcicc -O0
namespace search {

__device__ bool goes_right(double key, double value, bool right) { return right ? key <= value : key < value; }

__global__ void searchsorted(const double *sorted, long long length, const double *values, long long *result,
                             long long count, bool right)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    double value = values[i];
    long long lo = 0, hi = length;
    while (lo < hi) {
        long long mid = lo + ((hi - lo) >> 1);
        if (goes_right(sorted[mid], value, right))
            lo = mid + 1;
        else
            hi = mid;
    }
    result[i] = lo;
}

}  // namespace search
