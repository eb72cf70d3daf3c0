// wrong: barrier-divergence, deadlock
// Two consumer warps wait at barrier 1 with a count of 96. The count includes the producer warp, which never arrives at this barrier (PTX ISA, bar.sync: the barrier completes when the stated number of threads has arrived).
// launch: {"grid": [1], "block": [96], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [64], "dtype": "float32"}, {"zeros": [64], "dtype": "float32"}]}
struct NamedBarrier {
  static __device__ void sync(int threads, int id) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }  // <-- here
  static __device__ void arrive(int threads, int id) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
};

extern "C" __global__ void kernel(const float* x, float* y) {
  __shared__ float in[64], mid[64];
  const int warp = threadIdx.x / 32;
  if (warp == 2) {
    const int lane = threadIdx.x - 64;
    in[lane] = x[lane];
    in[lane + 32] = x[lane + 32];
    NamedBarrier::arrive(96, 2);
    return;
  }
  NamedBarrier::sync(96, 2);
  mid[threadIdx.x] = 2.f * in[threadIdx.x];
  NamedBarrier::sync(96, 1);  // <-- here
  y[threadIdx.x] = mid[63 - threadIdx.x];
}
