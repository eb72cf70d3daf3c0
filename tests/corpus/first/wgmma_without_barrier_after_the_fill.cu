// wrong: race, wgmma-order, missing-proxy-fence
// Each thread fills a part of both operands and executes fence.proxy.async, but no __syncthreads follows. The wgmma of one warp reads parts that other warps may not have written (PTX ISA, fence.proxy orders only the executing thread's accesses).
// launch: {"grid": [1], "block": [128], "cluster": null, "shmem_size": 0, "arguments": [{"random": [1024], "dtype": "float16"}, {"random": [128], "dtype": "float16"}, {"zeros": [128, 4], "dtype": "float32"}]}
struct GmmaDescriptor {
  unsigned long long bits;
  __device__ GmmaDescriptor(const void* smem, int lbo, int sbo)
      : bits(((__cvta_generic_to_shared(smem) & 0x3ffff) >> 4) | (unsigned long long)(lbo / 16) << 16 | (unsigned long long)(sbo / 16) << 32) {}
};
struct Accumulator { float r[4] = {0.f, 0.f, 0.f, 0.f}; };

__device__ void gemm(Accumulator& c, GmmaDescriptor a, GmmaDescriptor b) {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"  // <-- here
               : "+f"(c.r[0]), "+f"(c.r[1]), "+f"(c.r[2]), "+f"(c.r[3]) : "l"(a.bits), "l"(b.bits) : "memory");  // <-- here
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(128) kernel(const unsigned short* a, const unsigned short* b, float* out) {
  __shared__ alignas(128) unsigned short sa[1024];
  __shared__ alignas(128) unsigned short sb[128];
  for (int i = threadIdx.x; i < 1024; i += 128) sa[i] = a[i];  // <-- here
  sb[threadIdx.x] = b[threadIdx.x];  // <-- here
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  Accumulator c;
  gemm(c, GmmaDescriptor(sa, 1024, 128), GmmaDescriptor(sb, 128, 128));  // <-- here
  for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = c.r[i];
}
