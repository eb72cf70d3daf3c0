// wrong: missing-proxy-fence, wgmma-order
// Ordinary stores write A and B to shared memory, and wgmma reads them through the async proxy. Only wgmma.fence is between the two, which does not order the proxies for stores to shared memory (PTX ISA, wgmma.fence; Async proxy).
// launch: {"grid": [1], "block": [128], "cluster": null, "shmem_size": 0, "arguments": [{"random": [64, 16], "dtype": "float16"}, {"random": [8, 16], "dtype": "float16"}, {"zeros": [128, 4], "dtype": "float32"}]}
using half_bits = unsigned short;
__device__ unsigned long long make_desc(const void* p, unsigned lbo, unsigned sbo) {
  unsigned long long a = (unsigned)__cvta_generic_to_shared(p);
  return ((a & 0x3FFFF) >> 4) | ((unsigned long long)(lbo >> 4) << 16) | ((unsigned long long)(sbo >> 4) << 32);
}
__device__ int core_offset(int row, int col, int rows) { return (col / 8 * (rows / 8) + row / 8) * 64 + row % 8 * 8 + col % 8; }

extern "C" __global__ void __launch_bounds__(128) kernel(const half_bits* A, const half_bits* B, float* D) {
  __shared__ alignas(128) half_bits sA[64 * 16];
  __shared__ alignas(128) half_bits sB[8 * 16];
  const int t = threadIdx.x;
  for (int i = t; i < 64 * 16; i += 128) sA[core_offset(i / 16, i % 16, 64)] = A[i];  // <-- here
  if (t < 128) sB[core_offset(t / 16, t % 16, 8)] = B[t];  // <-- here
  __syncthreads();
  float d[4] = {0, 0, 0, 0};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"  // <-- here
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "l"(make_desc(sA, 1024, 128)), "l"(make_desc(sB, 128, 128)));  // <-- here
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 4; ++i) D[4 * t + i] = d[i];
}
