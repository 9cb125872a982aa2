// Device functions, structs by value, a table of pointers, a switch, variables in constant and global memory.
// targets: sm_70
#define GLOBAL __attribute__((global))
#define DEVICE __attribute__((device))
#define TID __nvvm_read_ptx_sreg_tid_x()

struct Pair { short first; double second; };
struct Box { char tag; Pair pairs[3]; };

__attribute__((constant)) int limits[5] = {1, 2, 3};
DEVICE const char *names[2] = {"one", "two\n"};
DEVICE long counter = -1;

DEVICE __attribute__((noinline)) int plus(int a, int b) { return a + b; }
DEVICE __attribute__((noinline)) int times(int a, int b) { return a * b; }
DEVICE __attribute__((noinline)) Pair swap(Pair p) { return {(short)p.second, (double)p.first}; }
DEVICE int (*const operations[2])(int, int) = {plus, times};

extern "C" GLOBAL void call_them(Box box, const int *x, int *y, unsigned char which)
{
    Pair p = swap(box.pairs[which % 3]);
    y[TID] = operations[which & 1](x[TID], limits[which % 5]) + p.first + names[which & 1][0];
    counter = p.second;
}

extern "C" GLOBAL void choose(int *x, int n)
{
    switch (n) {
    case 0: x[TID] = 7; break;
    case 1: x[TID] *= 3; break;
    case 2: x[TID] ^= x[TID + 1]; break;
    case 3: x[TID] = __nvvm_shfl_sync_bfly_i32(~0u, x[TID], 1, 31); break;
    case 4: x[TID] = __nvvm_atom_add_gen_i(x + 1, 2); break;
    case 5: x[TID] = __builtin_popcount(x[TID]); break;
    default: __builtin_trap();
    }
}

template <typename T> GLOBAL void fill(T *x, T value) { x[TID] = value; }
template GLOBAL void fill<_Float16 *>(_Float16 **, _Float16 *);
template GLOBAL void fill<long long>(long long *, long long);
