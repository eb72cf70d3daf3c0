// right
// Load, compute and store warps exchange two buffers by bar.arrive and bar.sync on four named barriers of 64 threads. Each barrier has exactly one arriving and one waiting warp, and the compute and store warps arrive once before the first round.
// launch: {"grid": [1], "block": [96], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [4, 32], "dtype": "int32"}, {"zeros": [4, 32], "dtype": "int32"}]}
// result: argument 1 equals (a0 * a0)[:, ::-1]
template <int Id> __device__ void arrive() { asm volatile("bar.arrive %0, 64;" ::"n"(Id) : "memory"); }
template <int Id> __device__ void sync() { asm volatile("bar.sync %0, 64;" ::"n"(Id) : "memory"); }
constexpr int kLoaded = 1, kConsumed = 2, kComputed = 3, kStored = 4;

extern "C" __global__ void kernel(const int* x, int* y) {
  __shared__ int in[32], out[32];
  const int role = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (role == 0) {
    for (int k = 0; k < 4; ++k) {
      sync<kConsumed>();
      in[lane] = x[32 * k + lane];
      arrive<kLoaded>();
    }
  } else if (role == 1) {
    arrive<kConsumed>();
    for (int k = 0; k < 4; ++k) {
      sync<kLoaded>();
      const int v = in[31 - lane];
      if (k < 3) arrive<kConsumed>();
      sync<kStored>();
      out[lane] = v * v;
      arrive<kComputed>();
    }
  } else {
    arrive<kStored>();
    for (int k = 0; k < 4; ++k) {
      sync<kComputed>();
      y[32 * k + lane] = out[lane];
      if (k < 3) arrive<kStored>();
    }
  }
}
