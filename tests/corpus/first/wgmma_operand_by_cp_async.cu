// wrong: missing-proxy-fence, wgmma-order
// cp.async copies both operands, then wait_group and __syncthreads follow, and then wgmma. cp.async writes through the generic proxy, wgmma reads through the async proxy, and no fence.proxy.async is between them (PTX ISA, wgmma.mma_async: Async proxy).
// launch: {"grid": [1], "block": [128], "cluster": null, "shmem_size": 0, "arguments": [{"random": [1024], "dtype": "float16"}, {"random": [128], "dtype": "float16"}, {"zeros": [128, 4], "dtype": "float32"}]}
typedef unsigned short bf;
__device__ unsigned sm(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ unsigned long long kmajor(const void* p, unsigned lead, unsigned stride) {
  return ((unsigned long long)(stride >> 4) << 32) | ((unsigned long long)(lead >> 4) << 16) | ((sm(p) & 0x3ffff) >> 4);
}
__device__ void copy16(bf* s, const bf* g) { asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(sm(s)), "l"(g) : "memory"); }  // <-- here

extern "C" __global__ void __launch_bounds__(128) kernel(const bf* a, const bf* b, float* d) {  // The matrices a and b are in core matrix order.
  __shared__ alignas(128) bf sa[1024], sb[128];
  const int t = threadIdx.x;
  copy16(sa + 8 * t, a + 8 * t);  // <-- here
  if (t < 16) copy16(sb + 8 * t, b + 8 * t);  // <-- here
  asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  float c0 = 0, c1 = 0, c2 = 0, c3 = 0;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"  // <-- here
               : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3) : "l"(kmajor(sa, 1024, 128)), "l"(kmajor(sb, 128, 128)) : "memory");  // <-- here
  asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" ::: "memory");
  float* o = d + 4 * t;
  o[0] = c0; o[1] = c1; o[2] = c2; o[3] = c3;
}
