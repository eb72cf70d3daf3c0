// right
// All threads of a block add to a workspace of floats that other blocks wrote with ordinary stores. One thread polls the lock with ld.acquire, and the CTA barrier extends the order to the other threads, in both directions (CUTLASS, Barrier::wait_eq and arrive_inc; PTX ISA, Causality order is transitive over barriers).
// launch: {"grid": [4], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [4, 64], "dtype": "float32"}, {"zeros": [64], "dtype": "float32"}, {"zeros": [1], "dtype": "int32"}, {"zeros": [64], "dtype": "float32"}]}
// result: argument 3 equals a0[:, ::-1].sum(axis=0)
namespace cutlass {
struct Barrier {
  __device__ static int ld_acquire(int* p) {
    int state;
    asm volatile("ld.global.acquire.gpu.b32 %0, [%1];\n" : "=r"(state) : "l"(p) : "memory");
    return state;
  }
  __device__ static void red_release(int* p, int v) {
    asm volatile("fence.acq_rel.gpu;\n" ::: "memory");
    asm volatile("red.relaxed.gpu.global.add.s32 [%0], %1;\n" ::"l"(p), "r"(v) : "memory");
  }
  __device__ static void wait_eq(int* flag, int thread_idx, int value) {
    if (thread_idx == 0)
      while (ld_acquire(flag) != value) {}
    __syncthreads();
  }
  __device__ static void arrive_inc(int* flag, int thread_idx) {
    __syncthreads();
    if (thread_idx == 0) red_release(flag, 1);
  }
};
}  // namespace cutlass

extern "C" __global__ void kernel(const float* partials, float* workspace, int* lock, float* tile) {
  const int t = threadIdx.x, peer = blockIdx.x;
  const bool first = peer == 0, final = peer == gridDim.x - 1;
  float accumulator = partials[peer * 64 + 63 - t];
  if (!first) {
    cutlass::Barrier::wait_eq(lock, t, peer);
    accumulator += workspace[t];
  }
  if (final) {
    tile[t] = accumulator;
    return;
  }
  workspace[t] = accumulator;
  cutlass::Barrier::arrive_inc(lock, t);
}
