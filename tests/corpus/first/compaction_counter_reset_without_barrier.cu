// wrong: race
// Thread 0 reads and clears the block's shared counter with ordinary accesses while other warps still add to it. No barrier is between the last atomic and the reset (PTX ISA, Memory consistency model: a weak write conflicts with the atomics).
// launch: {"grid": [1], "block": [96], "cluster": null, "shmem_size": 0, "arguments": [{"random": [4, 96], "dtype": "int32"}, {"zeros": [4], "dtype": "int32"}]}
__shared__ int kept;

__device__ void count_tile(const int* tile) {
  if (tile[threadIdx.x] % 3 == 0) atomicAdd(&kept, 1);  // <-- here
}

extern "C" __global__ void kernel(const int* values, int* counts) {
  if (threadIdx.x == 0) kept = 0;
  __syncthreads();
  for (int t = 0; t < 4; ++t) {
    count_tile(values + 96 * t);  // <-- here
    if (threadIdx.x == 0) {
      counts[t] = kept;  // <-- here
      kept = 0;          // <-- here
    }
    __syncthreads();
  }
}
