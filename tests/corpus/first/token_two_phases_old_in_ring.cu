// wrong: barrier-use, deadlock, race
// The ring of tokens delays each wait by two arrivals, so test_wait receives a state that is two phases old (PTX ISA, mbarrier.test_wait: the state must belong to the current phase or the one right before it).
// launch: {"grid": [1], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [4, 32], "dtype": "int32"}, {"zeros": [4, 32], "dtype": "int32"}]}
using token_t = unsigned long long;
__device__ token_t arrive(unsigned bar) {
  token_t t;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(t) : "r"(bar) : "memory");
  return t;
}
__device__ bool passed(unsigned bar, token_t t) {
  int ok;
  asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }" : "=r"(ok) : "r"(bar), "l"(t) : "memory");  // <-- here
  return ok;
}

extern "C" __global__ void kernel(const int* in, int* out) {
  __shared__ int slots[4][32];
  __shared__ unsigned long long storage;
  const unsigned bar = (unsigned)__cvta_generic_to_shared(&storage);
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(bar) : "memory");
  __syncwarp();
  token_t ring[3] = {};
#pragma unroll
  for (int i = 0; i < 6; ++i) {
    if (i < 4) {
      slots[i][threadIdx.x] = in[32 * i + threadIdx.x];
      ring[i % 3] = arrive(bar);
    }
    __syncwarp();
    if (i >= 2) {
      while (!passed(bar, ring[(i - 2) % 3])) {}  // <-- here
      out[32 * (i - 2) + threadIdx.x] = slots[i - 2][31 - threadIdx.x];
    }
  }
}
