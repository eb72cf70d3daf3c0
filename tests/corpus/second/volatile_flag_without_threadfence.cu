// wrong: race
// Block 0 publishes data through a volatile flag without a __threadfence() between data and flag in either block. A volatile access is relaxed and orders no other access (PTX ISA, Memory Consistency Model: volatile is treated as .relaxed; CUDA guide, Memory Fence Functions).
// launch: {"grid": [2], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [32], "dtype": "float32"}, {"zeros": [1], "dtype": "int32"}, {"zeros": [32], "dtype": "float32"}]}
// A producer block hands a row of results to a consumer block.

__device__ float compute(int i) { return 0.5f * i * i; }

extern "C" __global__ void kernel(float* partial, volatile int* flag, float* result) {
  if (blockIdx.x == 0) {
    partial[threadIdx.x] = compute(threadIdx.x);  // <-- here
    __syncthreads();
    if (threadIdx.x == 0) *flag = 1;  // <-- here
  } else {
    if (threadIdx.x == 0)
      while (*flag == 0) { /* spin */ }  // <-- here
    __syncthreads();
    result[threadIdx.x] = 2.f * partial[threadIdx.x];  // <-- here
  }
}
