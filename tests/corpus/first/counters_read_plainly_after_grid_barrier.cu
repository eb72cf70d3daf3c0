// right
// All blocks count by atomics, wait at the grid barrier of cooperative groups (whose sign bit flips when the last block arrives), and then read the counters by ordinary loads.
// launch: {"grid": [3], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"random": [96], "dtype": "int32"}, {"zeros": [4], "dtype": "int32"}, {"zeros": [1], "dtype": "uint32"}, {"zeros": [3, 4], "dtype": "int32"}]}
// result: argument 3 equals np.tile(np.bincount(a0 % 4, minlength=4), (3, 1))
__device__ void grid_sync(unsigned* arrived) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned nb = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1u;
    __threadfence();
    const unsigned old = atomicAdd(arrived, nb);
    while ((((old ^ *(volatile unsigned*)arrived) & 0x80000000u) == 0)) {}
    __threadfence();
  }
  __syncthreads();
}

extern "C" __global__ void kernel(const int* x, int* counts, unsigned* arrived, int* copies) {
  atomicAdd(counts + x[32 * blockIdx.x + threadIdx.x] % 4, 1);
  grid_sync(arrived);
  if (threadIdx.x < 4) copies[4 * blockIdx.x + threadIdx.x] = counts[threadIdx.x];
}
