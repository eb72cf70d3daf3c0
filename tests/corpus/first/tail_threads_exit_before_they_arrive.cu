// wrong: deadlock, early-exit, barrier-use
// The mbarrier counts every thread of the block, but threads beyond n return before they arrive (PTX ISA, mbarrier.init: the phase needs the full expected arrival count; an exited thread does not count as arrived).
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [50], "dtype": "float32"}, {"zeros": [50], "dtype": "float32"}, {"scalar": 50, "dtype": "int32"}]}
extern "C" __global__ void kernel(const float* x, float* y, int n) {
  __shared__ float s[64];
  __shared__ unsigned long long all;
  const unsigned bar = (unsigned)__cvta_generic_to_shared(&all);
  const int t = threadIdx.x;
  if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(blockDim.x) : "memory");  // <-- here
  __syncthreads();
  if (t >= n) return;  // <-- here
  s[t] = x[t];
  unsigned long long token;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(token) : "r"(bar) : "memory");  // <-- here
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.shared::cta.b64 p, [%0], %1; @!p bra L; }" ::"r"(bar), "l"(token) : "memory");  // <-- here
  y[t] = s[n - 1 - t];
}
