// 128-bit integers, vectors, bit fields, volatile and unaligned accesses; unoptimised, so that all goes through a depot.
// flags: -O0
#define GLOBAL __attribute__((global))
#define TID __nvvm_read_ptx_sreg_tid_x()

typedef float Four __attribute__((ext_vector_type(4)));
struct Flags { unsigned low : 3, middle : 17, high : 12; };
struct __attribute__((packed)) Odd { char tag; int value; };

extern "C" GLOBAL void wide(__int128 a, Four v, Flags f, Odd odd, volatile int *flag, Four *out, unsigned __int128 *big)
{
    while (*flag == 0) {
    }
    out[TID] = v * v + (float)f.middle;
    big[TID] = (unsigned __int128)(a * a) >> odd.value;
    f.high = odd.tag;
    *flag = f.high;
}
