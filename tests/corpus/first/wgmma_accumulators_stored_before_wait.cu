// wrong: wgmma-order
// The epilogue stores the accumulators directly after commit_group. The wait follows the stores (PTX ISA, wgmma.mma_async: access to the accumulator registers before wgmma.wait_group is undefined).
// launch: {"grid": [1], "block": [128], "cluster": null, "shmem_size": 0, "arguments": [{"random": [1024], "dtype": "float16"}, {"random": [128], "dtype": "float16"}, {"zeros": [128, 4], "dtype": "float32"}]}
typedef unsigned short u16;
static __device__ unsigned s(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
static __device__ unsigned long long desc(const void* p, int lead, int stride) {
  return (s(p) >> 4 & 0x3fff) | ((unsigned long long)(lead >> 4) << 16) | ((unsigned long long)(stride >> 4) << 32);
}

extern "C" __global__ void __launch_bounds__(128) kernel(const u16* a, const u16* b, float* d) {
  __shared__ alignas(128) u16 sa[1024];
  __shared__ alignas(128) u16 sb[128];
  for (int i = threadIdx.x; i < 1024; i += 128) sa[i] = a[i];
  sb[threadIdx.x] = b[threadIdx.x];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float c[4] = {};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 0, 1, 1, 0, 0;"  // <-- here
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "l"(desc(sa, 1024, 128)), "l"(desc(sb, 128, 128)) : "memory");  // <-- here
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(d + 4 * threadIdx.x), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]) : "memory");  // <-- here
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
