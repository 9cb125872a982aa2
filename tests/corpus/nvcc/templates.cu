// Mangled names: templates over types, values and functors, in namespaces.
namespace shapes {
template <typename T, int N> struct Tile { T at[N]; };

template <typename T, int N, bool Square>
__global__ void scale(Tile<T, N> tile, T *out, T by)
{
    int i = threadIdx.x;
    T v = tile.at[i % N] * by;
    out[i] = Square ? v * v : v;
}
}  // namespace shapes

template __global__ void shapes::scale<float, 4, true>(shapes::Tile<float, 4>, float *, float);
template __global__ void shapes::scale<int, 3, false>(shapes::Tile<int, 3>, int *, int);
template __global__ void shapes::scale<double, 1, true>(shapes::Tile<double, 1>, double *, double);
