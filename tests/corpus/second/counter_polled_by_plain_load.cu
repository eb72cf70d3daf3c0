// wrong: race
// Blocks add to a progress counter by red, and block 0 reads the counter with an ordinary (weak) load. A weak read and an atomic of another thread to the same word are unordered (PTX ISA, Data races).
// launch: {"grid": [4], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [1], "dtype": "uint32"}, {"zeros": [4], "dtype": "uint32"}]}
__device__ __forceinline__ void red_add(unsigned* p, unsigned v) {
  asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

extern "C" __global__ void kernel(unsigned* done, unsigned* log) {
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  const unsigned ballot = __ballot_sync(0xffffffffu, (lane * 2654435761u >> 7) & 1);
  if (lane == 0) {
    red_add(done, __popc(ballot));  // <-- here
    unsigned seen;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(seen) : "l"(done) : "memory");  // <-- here
    log[blockIdx.x] = seen;
  }
}
