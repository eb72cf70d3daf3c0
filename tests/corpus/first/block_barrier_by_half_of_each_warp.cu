// wrong: barrier-divergence, deadlock, race
// Only even lanes have a row and call __syncthreads. Odd lanes continue to the reduction (CUDA guide, __syncthreads in conditional code; PTX ISA, bar.sync is barrier.sync.aligned: all threads of a warp execute the same one).
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [32], "dtype": "float32"}, {"zeros": [64], "dtype": "float32"}]}
extern "C" __global__ void kernel(const float* rows, float* out) {
  __shared__ float s[32];
  const int tid = threadIdx.x;
  if (tid % 2 == 0) {
    s[tid / 2] = rows[tid / 2];  // <-- here
    __syncthreads();             // <-- here
  }
  out[tid] = s[31 - tid / 2];    // <-- here
}
