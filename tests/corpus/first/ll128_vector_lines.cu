// right
// One 16-byte volatile vector contains two data words and their two flags, as in NCCL's LL. The vector as a whole is not atomic, but each 8-byte element is atomic and has its own flag.
// launch: {"grid": [2], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [64], "dtype": "uint32"}, {"zeros": [64], "dtype": "uint64"}, {"zeros": [64], "dtype": "uint32"}]}
// result: argument 2 equals a0 + 1
union Line { struct { unsigned data1, flag1, data2, flag2; }; unsigned long long v[2]; };

extern "C" __global__ void kernel(const unsigned* x, unsigned long long* lines, unsigned* y) {
  unsigned long long* mine = lines + 2 * threadIdx.x;
  Line l;
  if (blockIdx.x == 1) {
    l.data1 = x[2 * threadIdx.x] + 1, l.data2 = x[2 * threadIdx.x + 1] + 1;
    l.flag1 = l.flag2 = 0xabcd;
    asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(mine), "l"(l.v[0]), "l"(l.v[1]) : "memory");
  } else {
    do asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(l.v[0]), "=l"(l.v[1]) : "l"(mine) : "memory");
    while (l.flag1 != 0xabcd || l.flag2 != 0xabcd);
    y[2 * threadIdx.x] = l.data1;
    y[2 * threadIdx.x + 1] = l.data2;
  }
}
