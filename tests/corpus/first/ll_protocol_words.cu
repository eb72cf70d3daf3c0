// right
// In NCCL's LL protocol, one aligned 8-byte volatile word contains data and flag, so the reader needs no fence. The kernel resembles polling without acquire (PTX ISA: an aligned 64-bit access is single-copy atomic, volatile is relaxed.sys).
// launch: {"grid": [2], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [4, 32], "dtype": "uint32"}, {"zeros": [4, 32], "dtype": "uint64"}, {"zeros": [4, 32], "dtype": "uint32"}]}
// result: argument 2 equals a0 * 3
typedef unsigned long long u64;
__device__ void store_ll(u64* line, unsigned data, unsigned flag) { *(volatile u64*)line = (u64)flag << 32 | data; }
__device__ unsigned read_ll(u64* line, unsigned flag) {
  u64 v;
  do v = *(volatile u64*)line; while ((unsigned)(v >> 32) != flag);
  return (unsigned)v;
}

extern "C" __global__ void kernel(const unsigned* x, u64* lines, unsigned* y) {
  for (unsigned step = 0; step < 4; ++step) {
    const int i = 32 * step + threadIdx.x;
    if (blockIdx.x == 0) store_ll(lines + i, 3 * x[i], step + 1);
    else y[i] = read_ll(lines + i, step + 1);
  }
}
