// right
// The kernel issues the next tile's wgmma before it reads the accumulators of the previous wgmma. Two sets of accumulators alternate, and wait_group 1 ensures that the older group is complete (PTX ISA, wgmma.wait_group).
// launch: {"grid": [1], "block": [128], "cluster": null, "shmem_size": 0, "arguments": [{"random": [3, 64, 16], "dtype": "float16"}, {"random": [8, 16], "dtype": "float16"}, {"zeros": [3, 64, 8], "dtype": "float32"}]}
// result: argument 2 equals a0.astype(np.float32) @ a1.astype(np.float32).T
using half_bits = unsigned short;
__device__ unsigned long long desc(const void* p, unsigned k_bytes, unsigned mn_bytes) {
  const unsigned long long a = (unsigned)__cvta_generic_to_shared(p);
  return (a & 0x3ffff) >> 4 | (unsigned long long)(k_bytes >> 4) << 16 | (unsigned long long)(mn_bytes >> 4) << 32;
}
__device__ int core(int row, int k, int rows) { return (k / 8 * (rows / 8) + row / 8) * 64 + row % 8 * 8 + k % 8; }
__device__ void issue(float (&d)[4], unsigned long long a, unsigned long long b) {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 0, 1, 1, 0, 0;"
               : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) : "l"(a), "l"(b) : "memory");
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int N> __device__ void wait(float (&d)[4]) {
  asm volatile("wgmma.wait_group.sync.aligned %4;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "n"(N) : "memory");
}
__device__ void store(const float (&d)[4], float* out) {
  const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, col = threadIdx.x % 4 * 2;
  for (int i = 0; i < 4; ++i) out[(row + i / 2 * 8) * 8 + col + i % 2] = d[i];
}

extern "C" __global__ void __launch_bounds__(128) kernel(const half_bits* A, const half_bits* B, float* D) {
  __shared__ alignas(128) half_bits sA[3][1024];
  __shared__ alignas(128) half_bits sB[128];
  const int t = threadIdx.x;
  for (int i = t; i < 3 * 1024; i += 128) sA[i / 1024][core(i % 1024 / 16, i % 16, 64)] = A[i];
  sB[core(t / 16, t % 16, 8)] = B[t];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const unsigned long long b = desc(sB, 128, 128);
  float even[4], odd[4];
  issue(even, desc(sA[0], 1024, 128), b);
  issue(odd, desc(sA[1], 1024, 128), b);
  wait<1>(even);
  store(even, D);
  issue(even, desc(sA[2], 1024, 128), b);
  wait<1>(odd);
  store(odd, D + 512);
  wait<0>(even);
  store(even, D + 1024);
}
