// wrong: no-progress, deadlock
// Each block waits for the flag of its predecessor. The first block also waits, for a slot that no block sets (PTX ISA, Memory consistency model: a poll ends only when another thread's store gives it a new value).
// launch: {"grid": [3], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [4], "dtype": "int32"}, {"zeros": [3], "dtype": "int32"}]}
__device__ int ld_acquire(const int* p) {
  int v;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");  // <-- here
  return v;
}

extern "C" __global__ void kernel(int* flags, int* order) {
  if (threadIdx.x == 0) {
    while (ld_acquire(&flags[blockIdx.x]) == 0) __nanosleep(20);  // <-- here
    order[blockIdx.x] = blockIdx.x;
    asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(&flags[blockIdx.x + 1]) : "memory");
  }
}
