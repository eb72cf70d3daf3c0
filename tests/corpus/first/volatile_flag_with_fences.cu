// right
// Block 1 polls a volatile flag, and reads ordinary data after a __threadfence. Block 0 stores the data, synchronizes its threads, executes a fence, and sets the flag by a volatile store (CUDA guide, Memory fence functions).
// launch: {"grid": [2], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [64], "dtype": "float32"}, {"zeros": [64], "dtype": "float32"}, {"zeros": [1], "dtype": "int32"}, {"zeros": [64], "dtype": "float32"}]}
// result: argument 3 equals a0[::-1] * 2
extern "C" __global__ void kernel(const float* x, float* mid, int* flag, float* y) {
  const int t = threadIdx.x;
  volatile int* ready = flag;
  if (blockIdx.x == 0) {
    mid[t] = 2.f * x[t];
    __syncthreads();
    if (t == 0) {
      __threadfence();
      *ready = 1;
    }
  } else {
    if (t == 0) {
      while (!*ready) {}
      __threadfence();
    }
    __syncthreads();
    y[t] = mid[63 - t];
  }
}
