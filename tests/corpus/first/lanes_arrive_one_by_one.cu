// right
// Every lane of both warps arrives at one mbarrier of count 64, and then reads the part of the other warp. These are not too many arrivals, because each thread arrives once per phase.
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [3, 64], "dtype": "float32"}, {"zeros": [3, 64], "dtype": "float32"}]}
// result: argument 1 equals a0[:, ::-1]
extern "C" __global__ void kernel(const float* x, float* y) {
  __shared__ float s[2][64];
  __shared__ unsigned long long storage;
  const unsigned bar = (unsigned)__cvta_generic_to_shared(&storage);
  const int t = threadIdx.x;
  if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(bar) : "memory");
  __syncthreads();
  for (int i = 0; i < 3; ++i) {  // Two slots are sufficient, because a thread is at most one phase ahead.
    s[i & 1][t] = x[64 * i + t];
    unsigned long long token;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(token) : "r"(bar) : "memory");
    asm volatile("{ .reg .pred p; L: mbarrier.try_wait.shared::cta.b64 p, [%0], %1; @!p bra L; }" ::"r"(bar), "l"(token) : "memory");
    y[64 * i + t] = s[i & 1][63 - t];
  }
}
