// wrong: race
// Blocks take tickets from one global counter by atomics of .cta scope. These atomics are not morally strong with atomics of another CTA, so two blocks may get the same ticket (PTX ISA, Morally strong operations: each scope must include the other thread).
// launch: {"grid": [3], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [1], "dtype": "uint32"}, {"zeros": [3], "dtype": "uint32"}]}
__device__ __forceinline__ unsigned next_ticket(unsigned* counter) {
  unsigned t;
  asm volatile("atom.add.relaxed.cta.global.u32 %0, [%1], 1;" : "=r"(t) : "l"(counter) : "memory");  // <-- here
  return t;
}

extern "C" __global__ void kernel(unsigned* counter, unsigned* owner) {
  __shared__ unsigned ticket;
  if (threadIdx.x == 0) ticket = next_ticket(counter);  // <-- here
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(&owner[ticket], blockIdx.x + 1);
}
