// right
// A producer warp loads by cp.async and signals with cp.async.mbarrier.arrive.noinc. The kernel has no wait_group, but each lane arrives when its own copies are complete, and the barrier counts 32 arrivals.
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [4, 128], "dtype": "float32"}, {"zeros": [4, 128], "dtype": "float32"}]}
// result: argument 1 equals a0[:, ::-1]
struct Stage { alignas(16) float v[128]; unsigned long long full, empty; };
static __device__ unsigned a(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
static __device__ void wait(const void* bar, int parity) { asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra L; }" ::"r"(a(bar)), "r"(parity) : "memory"); }

extern "C" __global__ void kernel(const float* x, float* y) {
  __shared__ Stage s[2];
  const int lane = threadIdx.x & 31;
  if (threadIdx.x < 2)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;\n\tmbarrier.init.shared::cta.b64 [%1], 32;" ::"r"(a(&s[threadIdx.x].full)), "r"(a(&s[threadIdx.x].empty)) : "memory");
  __syncthreads();
  for (int k = 0; k < 4; ++k) {
    Stage& st = s[k & 1];
    const int phase = k >> 1 & 1;
    if (threadIdx.x < 32) {
      wait(&st.empty, phase ^ 1);
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(a(st.v + 4 * lane)), "l"(x + 128 * k + 4 * lane) : "memory");
      asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(a(&st.full)) : "memory");
    } else {
      wait(&st.full, phase);
      for (int i = lane; i < 128; i += 32) y[128 * k + i] = st.v[127 - i];
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(a(&st.empty)) : "memory");
    }
  }
}
