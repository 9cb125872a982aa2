// A dense switch becomes brx.idx with .branchtargets.
extern "C" __global__ void dispatch(int *x, int n)
{
    int i = threadIdx.x;
    int v = x[i];
    switch (n) {
    case 0: v += 7; break;
    case 1: v *= v; break;
    case 2: v ^= 0x55; break;
    case 3: v = __brev(v); break;
    case 4: v = __popc(v); break;
    case 5: v = __clz(v); break;
    case 6: v = v / (i + 1); break;
    case 7: v = v % (i + 3); break;
    case 8: v = ~v; [[fallthrough]];
    case 9: v <<= i; break;
    default: v = -1;
    }
    x[i] = v;
}
