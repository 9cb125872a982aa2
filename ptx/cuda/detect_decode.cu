// Decodes the box head of a detector. Distances from an anchor to the left, top, right and bottom edge,
// [B, 4, A], become centre x, centre y, width and height, [B, 4, A], in pixels.
// Launch: grid B * cdiv(A, 128), block 128; one anchor per thread.

constexpr int BLOCK_A = 128;

extern "C" __global__ void __launch_bounds__(BLOCK_A)
detect_decode(const float *boxes, const float *anchor_x, const float *anchor_y, const float *strides, float *out,
              int B, int A)
{
    const int blocks = (A + BLOCK_A - 1) / BLOCK_A;
    const int b = blockIdx.x / blocks;
    const int a = blockIdx.x % blocks * BLOCK_A + threadIdx.x;
    if (b >= B || a >= A)
        return;

    const float *box = boxes + b * 4 * A + a;
    const float ax = anchor_x[a];
    const float ay = anchor_y[a];
    const float stride = strides[a];
    const float x1 = ax - box[0];
    const float y1 = ay - box[A];
    const float x2 = ax + box[2 * A];
    const float y2 = ay + box[3 * A];

    float *dst = out + b * 4 * A + a;
    dst[0] = (x1 + x2) * 0.5f * stride;
    dst[A] = (y1 + y2) * 0.5f * stride;
    dst[2 * A] = (x2 - x1) * stride;
    dst[3 * A] = (y2 - y1) * stride;
}
