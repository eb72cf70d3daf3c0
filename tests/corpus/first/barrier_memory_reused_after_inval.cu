// right
// The mbarrier's bytes serve first as a barrier, then (after inval and __syncthreads) as data, and then (after another __syncthreads) as a barrier with another count. No operation on a barrier overlaps a change of use.
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [64], "dtype": "int32"}, {"zeros": [64], "dtype": "int32"}]}
// result: argument 1 equals a0[::-1] + 64
__device__ void meet(unsigned bar) {
  unsigned long long token;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(token) : "r"(bar) : "memory");
  asm volatile("{ .reg .pred p; L: mbarrier.test_wait.shared::cta.b64 p, [%0], %1; @!p bra L; }" ::"r"(bar), "l"(token) : "memory");
}

extern "C" __global__ void kernel(const int* x, int* y) {
  __shared__ union { unsigned long long bar; int size; } u;
  __shared__ int v[64];
  const unsigned bar = (unsigned)__cvta_generic_to_shared(&u.bar);
  const int t = threadIdx.x;
  if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(bar) : "memory");
  __syncthreads();
  v[t] = x[t];
  meet(bar);
  int r = v[63 - t];
  __syncthreads();
  if (t == 0) {
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
    u.size = 64;
  }
  __syncthreads();
  r += u.size;
  __syncthreads();
  if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(bar) : "memory");
  __syncthreads();
  if (t < 32) meet(bar);
  y[t] = r;
}
