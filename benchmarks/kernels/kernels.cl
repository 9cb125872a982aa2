// The kernels of kernels.cu and samples.py in OpenCL C, which has no shuffles: reductions go through local memory.
// Arguments, grid and work-group are those of the PTX.

#pragma OPENCL FP_CONTRACT ON

kernel void vector_add(global const float *x, global const float *y, global float *out, int n)
{
    const int i = get_global_id(0);
    if (i < n)
        out[i] = x[i] + y[i];
}

// The sum, or the maximum, of a value of each of the 128 work-items.
float sum_of(float value, local float *room)
{
    const int item = get_local_id(0);
    room[item] = value;
    for (int k = 64; k; k /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < k)
            room[item] += room[item + k];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    value = room[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return value;
}

float maximum_of(float value, local float *room)
{
    const int item = get_local_id(0);
    room[item] = value;
    for (int k = 64; k; k /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < k)
            room[item] = fmax(room[item], room[item + k]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    value = room[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return value;
}

kernel void softmax(global const float *x, global float *out, int columns)
{
    local float room[128];
    global const float *row = x + (size_t)get_group_id(0) * columns;
    global float *to = out + (size_t)get_group_id(0) * columns;
    float top = -INFINITY;
    for (int c = get_local_id(0); c < columns; c += get_local_size(0))
        top = fmax(top, row[c]);
    top = maximum_of(top, room);
    float sum = 0;
    for (int c = get_local_id(0); c < columns; c += get_local_size(0))
        sum += native_exp(row[c] - top);
    sum = sum_of(sum, room);
    for (int c = get_local_id(0); c < columns; c += get_local_size(0))
        to[c] = native_exp(row[c] - top) / sum;
}

#define TILE 16

kernel void matmul(global const float *a, global const float *b, global float *c, int n)
{
    local float as[TILE][TILE], bs[TILE][TILE];
    const int tx = get_local_id(0), ty = get_local_id(1);
    const int row = get_group_id(1) * TILE + ty, column = get_group_id(0) * TILE + tx;
    float total = 0;
    for (int k = 0; k < n; k += TILE) {
        as[ty][tx] = a[row * n + k + tx];
        bs[ty][tx] = b[(k + ty) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = 0; j < TILE; ++j)
            total += as[ty][j] * bs[j][tx];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = total;
}

#define SIDE 64
#define DEPTH 16
#define EACH 4

kernel void sgemm(global const float *a, global const float *b, global float *c, int n)
{
    local float as[DEPTH][SIDE], bs[DEPTH][SIDE];
    const int tx = get_local_id(0), ty = get_local_id(1), number = ty * 16 + tx;
    const int top = get_group_id(1) * SIDE, left = get_group_id(0) * SIDE;
    const int a_row = number / 4, a_column = number % 4 * 4, b_row = number / 16, b_column = number % 16 * 4;
    float total[EACH][EACH] = {};
    for (int k = 0; k < n; k += DEPTH) {
        const float4 av = vload4(0, &a[(top + a_row) * n + k + a_column]);
        const float4 bv = vload4(0, &b[(k + b_row) * n + left + b_column]);
        as[a_column][a_row] = av.x;
        as[a_column + 1][a_row] = av.y;
        as[a_column + 2][a_row] = av.z;
        as[a_column + 3][a_row] = av.w;
        vstore4(bv, 0, &bs[b_row][b_column]);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = 0; j < DEPTH; ++j) {
            float x[EACH], y[EACH];
#pragma unroll
            for (int i = 0; i < EACH; ++i) {
                x[i] = as[j][ty * EACH + i];
                y[i] = bs[j][tx * EACH + i];
            }
#pragma unroll
            for (int i = 0; i < EACH; ++i)
#pragma unroll
                for (int l = 0; l < EACH; ++l)
                    total[i][l] += x[i] * y[l];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < EACH; ++i)
        for (int l = 0; l < EACH; ++l)
            c[(top + ty * EACH + i) * n + left + tx * EACH + l] = total[i][l];
}

kernel void mandelbrot(global int *out, int width, int height, int rounds)
{
    const int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height)
        return;
    const float cr = -2.0f + 3.0f * x / width, ci = -1.5f + 3.0f * y / height;
    float zr = 0, zi = 0;
    int k = 0;
    while (k < rounds && zr * zr + zi * zi < 4.0f) {
        const float next = zr * zr - zi * zi + cr;
        zi = 2.0f * zr * zi + ci;
        zr = next;
        ++k;
    }
    out[y * width + x] = k;
}

kernel void reduction(global const float *x, global float *out, int n)
{
    local float room[256];
    const int item = get_local_id(0);
    float sum = 0;
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        sum += x[i];
    room[item] = sum;
    for (int k = 128; k; k /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < k)
            room[item] += room[item + k];
    }
    if (item == 0)
        out[get_group_id(0)] = room[0];
}

kernel void histogram(global const uint *words, global uint *counts, int n)
{
    local uint bins[256];
    bins[get_local_id(0)] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) {
        const uint word = words[i];
        atomic_inc(&bins[word & 255]);
        atomic_inc(&bins[word >> 8 & 255]);
        atomic_inc(&bins[word >> 16 & 255]);
        atomic_inc(&bins[word >> 24]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(&counts[get_local_id(0)], bins[get_local_id(0)]);
}

#define COLUMNS 1024 // of a row at most, eight a work-item

kernel void layer_norm(global const float *x, global const float *w, global const float *b, global float *out, int n,
                       float eps)
{
    local float room[128];
    const int item = get_local_id(0), row = get_group_id(0) * n;
    float v[COLUMNS / 128], sum = 0;
    for (int k = 0; k < COLUMNS / 128; ++k) {
        const int at = item + 128 * k;
        v[k] = at < n ? x[row + at] : 0;
        sum += v[k];
    }
    const float mean = sum_of(sum, room) / n;
    sum = 0;
    for (int k = 0; k < COLUMNS / 128; ++k) {
        v[k] = item + 128 * k < n ? v[k] - mean : 0;
        sum += v[k] * v[k];
    }
    const float scale = native_rsqrt(sum_of(sum, room) / n + eps);
    for (int k = 0; k < COLUMNS / 128; ++k) {
        const int at = item + 128 * k;
        if (at < n)
            out[row + at] = v[k] * scale * w[at] + b[at];
    }
}

kernel void detect_decode(global const float *boxes, global const float *anchor_x, global const float *anchor_y,
                          global const float *strides, global float *out, int images, int anchors)
{
    const int blocks = (anchors + 127) / 128;
    const int image = get_group_id(0) / blocks, a = get_group_id(0) % blocks * 128 + get_local_id(0);
    if (image >= images || a >= anchors)
        return;
    global const float *box = boxes + image * 4 * anchors + a;
    global float *to = out + image * 4 * anchors + a;
    const float x1 = anchor_x[a] - box[0], y1 = anchor_y[a] - box[anchors];
    const float x2 = anchor_x[a] + box[2 * anchors], y2 = anchor_y[a] + box[3 * anchors], stride = strides[a];
    to[0] = (x1 + x2) * 0.5f * stride;
    to[anchors] = (y1 + y2) * 0.5f * stride;
    to[2 * anchors] = (x2 - x1) * stride;
    to[3 * anchors] = (y2 - y1) * stride;
}
