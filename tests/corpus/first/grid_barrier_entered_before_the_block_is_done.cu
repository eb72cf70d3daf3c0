// wrong: race
// Every thread executes a fence, but thread 0 signals the grid barrier without a preceding __syncthreads. Stores of other warps may follow the signal (CUDA guide, threadFenceReduction: all threads' stores must precede the counting atomic).
// launch: {"grid": [2], "block": [96], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [192], "dtype": "int32"}, {"zeros": [1], "dtype": "int32"}, {"zeros": [192], "dtype": "int32"}]}
extern "C" __global__ void kernel(int* x, int* count, int* y) {
  const int i = 96 * blockIdx.x + threadIdx.x;
  x[i] = i * i;  // <-- here
  __threadfence();
  if (threadIdx.x == 0) {
    asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(count) : "memory");
    int seen = 0;
    while (seen < (int)gridDim.x) asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(count) : "memory");
  }
  __syncthreads();
  y[i] = x[191 - i];  // <-- here
}
