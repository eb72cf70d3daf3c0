// wrong: race
// The grid barrier counts blocks with atomicAdd and polls with a volatile load, but has no __threadfence on either side (CUDA guide, Memory fence functions: atomics and volatile do not order other accesses).
// launch: {"grid": [3], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [192], "dtype": "float32"}, {"zeros": [1], "dtype": "uint32"}, {"zeros": [192], "dtype": "float32"}]}
__device__ void grid_sync(unsigned* arrived) {
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (*(volatile unsigned*)arrived < gridDim.x) {}
  }
  __syncthreads();
}

extern "C" __global__ void kernel(float* x, unsigned* arrived, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  x[i] = 0.25f * i;  // <-- here
  grid_sync(arrived);
  y[i] = x[(i + 64) % n];  // <-- here
}
