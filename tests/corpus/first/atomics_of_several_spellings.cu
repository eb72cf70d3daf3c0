// right
// Blocks update one word by atomicAdd, red.relaxed, red.release and a compare-and-swap loop with a relaxed first read. All these accesses are strong, of gpu scope and of one size, so they do not race.
// launch: {"grid": [4], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [1], "dtype": "int32"}]}
// result: argument 0 equals np.array([32 * (1 + 2 + 3 + 4)])
__device__ void add_by_cas(int* p, int n) {
  int old, seen;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(p) : "memory");
  do {
    old = seen;
    seen = atomicCAS(p, old, old + n);
  } while (seen != old);
}

extern "C" __global__ void kernel(int* sum) {
  switch (blockIdx.x) {
    case 0: atomicAdd(sum, 1); break;
    case 1: asm volatile("red.relaxed.gpu.global.add.s32 [%0], 2;" ::"l"(sum) : "memory"); break;
    case 2: asm volatile("red.release.gpu.global.add.s32 [%0], 3;" ::"l"(sum) : "memory"); break;
    default: add_by_cas(sum, 4);
  }
}
