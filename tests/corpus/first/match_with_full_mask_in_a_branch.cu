// wrong: barrier-divergence, deadlock
// Only lanes with a valid key enter the branch, but the mask of match.any contains all 32 lanes. The other lanes continue to the store and never execute match.any (PTX ISA, match.sync: all threads in membermask must execute the same match.sync).
// launch: {"grid": [1], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"random": [32], "dtype": "int32"}, {"zeros": [32], "dtype": "uint32"}]}
#define FULL_MASK 0xffffffffu
__device__ unsigned peers_of(int key) {
  unsigned r;
  asm volatile("match.any.sync.b32 %0, %1, %2;" : "=r"(r) : "r"(key), "r"(FULL_MASK));  // <-- here
  return r;
}

extern "C" __global__ void kernel(const int* keys, unsigned* groups) {
  const int key = keys[threadIdx.x];
  unsigned g = 0;
  if (key % 4 != 3) {
    g = peers_of(key % 4);  // <-- here
  }
  groups[threadIdx.x] = g;
}
