// Structs as parameters: padding, alignment over 16, arrays, an empty struct, 4,000 bytes.
struct Empty {};
struct Point { char tag; double x; short y; };
struct alignas(16) Quad { float v[4]; };
struct alignas(64) Map { unsigned long long words[16]; };
struct Big { int items[1000]; };

extern "C" __global__ void padded(Point p, Quad q, double *out) { out[0] = p.tag + p.x + p.y + q.v[2]; }
extern "C" __global__ void aligned_after_byte(char c, Map m, char d, int *out) { *out = c + (int)m.words[3] + d; }
extern "C" __global__ void nothing(Empty e, int *out) { *out = 1; }
extern "C" __global__ void indexed(Big b, int i, int *out) { *out = b.items[i]; }
extern "C" __global__ void small_vectors(char2 a, short3 b, float2 c, double2 d, float3 e, int *out)
{
    *out = a.x + a.y + b.z + (int)(c.x + d.y + e.z);
}
