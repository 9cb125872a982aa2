// Texture and surface objects in one, two and three dimensions, layers, cubes, gathers.
extern "C" __global__ void sample(cudaTextureObject_t tex, cudaSurfaceObject_t surf, float4 *out, int n)
{
    int i = threadIdx.x;
    float u = (i + 0.5f) / n;
    float4 v = tex2D<float4>(tex, u, 1 - u);
    v.x += tex1Dfetch<float>(tex, i) + tex1D<float>(tex, u) + tex3D<float>(tex, u, u, u);
    v.y += tex2DLayered<float>(tex, u, u, 3) + texCubemap<float>(tex, u, u, 1.0f);
    v.z += tex2DLod<float>(tex, u, u, 1.5f) + tex2DGrad<float>(tex, u, u, make_float2(u, 0), make_float2(0, u));
    v.w += tex2Dgather<float4>(tex, u, u, 2).y + (float)tex2D<unsigned char>(tex, u, u);
    unsigned s = surf2Dread<unsigned>(surf, i * 4, 0, cudaBoundaryModeZero);
    surf2Dwrite(make_uchar4(1, 2, 3, (unsigned char)s), surf, i * 4, 1, cudaBoundaryModeClamp);
    surf3Dwrite(make_ushort2(1, 2), surf, i * 4, 1, 2, cudaBoundaryModeTrap);
    out[i] = v;
}
