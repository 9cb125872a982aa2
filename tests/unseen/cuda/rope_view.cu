// Rotary embedding in place, on a tensor handed over as a view by value: pointer, sizes and strides in a struct.
template <typename T, int RANK>
struct View {
    T *data;
    int size[RANK];
    long long stride[RANK];
};

__global__ void rope_inplace(View<float, 3> x, const int *__restrict__ positions, float log2_base, bool interleaved)
{
    int half = x.size[2] / 2;
    int pair = blockIdx.x * blockDim.x + threadIdx.x;
    int head = blockIdx.y * blockDim.y + threadIdx.y;
    int token = blockIdx.z;
    if (pair >= half || head >= x.size[1])
        return;
    float angle = positions[token] * exp2f(-log2_base * (2.0f * pair) / x.size[2]);
    float s, c;
    sincosf(angle, &s, &c);
    float *row = x.data + token * x.stride[0] + head * x.stride[1];
    long long first = interleaved ? 2 * pair : pair;
    long long second = interleaved ? 2 * pair + 1 : pair + half;
    float a = row[first * x.stride[2]], b = row[second * x.stride[2]];
    row[first * x.stride[2]] = a * c - b * s;
    row[second * x.stride[2]] = a * s + b * c;
}
