// wrong: wgmma-order
// The online softmax rescales the accumulators between two wgmma groups without a wait for the first group, and without a wgmma.fence afterwards (PTX ISA, wgmma.mma_async: modifying accumulator registers in flight is undefined; wgmma.fence).
// launch: {"grid": [1], "block": [128], "cluster": null, "shmem_size": 0, "arguments": [{"random": [1024], "dtype": "float16"}, {"random": [128], "dtype": "float16"}, {"zeros": [128, 4], "dtype": "float32"}, {"scalar": 0.5, "dtype": "float32"}]}
using half_t = unsigned short;
__device__ inline unsigned long long make_desc(const half_t* p, unsigned k_stride, unsigned mn_stride) {
  unsigned long long d = (unsigned)__cvta_generic_to_shared(p) >> 4;
  return d | (unsigned long long)(k_stride >> 4) << 16 | (unsigned long long)(mn_stride >> 4) << 32;
}
__device__ inline void mma(float (&o)[4], unsigned long long a, unsigned long long b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"  // <-- here
               : "+f"(o[0]), "+f"(o[1]), "+f"(o[2]), "+f"(o[3]) : "l"(a), "l"(b) : "memory");  // <-- here
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(128) kernel(const half_t* p, const half_t* v, float* out, float scale) {
  __shared__ alignas(1024) half_t sp[1024];
  __shared__ alignas(1024) half_t sv[128];
  for (int i = threadIdx.x; i < 1024; i += 128) sp[i] = p[i];
  sv[threadIdx.x] = v[threadIdx.x];
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  float o[4] = {0, 0, 0, 0};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  mma(o, make_desc(sp, 1024, 128), make_desc(sv, 128, 128));
  for (int i = 0; i < 4; ++i) asm volatile("mul.f32 %0, %0, %1;" : "+f"(o[i]) : "f"(scale));  // <-- here
  mma(o, make_desc(sp, 1024, 128), make_desc(sv, 128, 128));  // <-- here
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = o[i];
}
