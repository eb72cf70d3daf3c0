// wrong: missing-tensor-map-fence, race
// CTA 0 changes a descriptor that CTA 1 uses after a relaxed flag. The release and acquire proxy fences have .cta scope, which does not include the other CTA (PTX ISA, fence.proxy.tensormap, tensormap.cp_fenceproxy: .scope).
// launch: {"grid": [2], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [4, 32], "dtype": "float32"}, {"map": 0, "box_dim": [4, 32], "swizzle": "NONE"}, {"arange": [4, 32], "dtype": "float32"}, {"zeros": [128], "dtype": "float32"}]}
struct alignas(64) Desc { unsigned long long w[16]; };
struct Shared { alignas(128) float tile[128]; alignas(128) Desc scratch; unsigned long long bar; };
__device__ alignas(128) Desc published;
__device__ unsigned ready;
static __device__ unsigned sm(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ void publish(Shared& s, const Desc& tmpl, const float* base) {  // One warp executes this branch.
  for (int i = threadIdx.x; i < 16; i += 32) s.scratch.w[i] = tmpl.w[i];
  __syncwarp();
  if (threadIdx.x == 0) asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(sm(&s.scratch)), "l"(base) : "memory");
  __syncwarp();
  asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.cta.sync.aligned [%0], [%1], 128;"  // <-- here
               ::"l"(__cvta_generic_to_global(&published)), "r"(sm(&s.scratch)) : "memory");  // <-- here
  if (threadIdx.x == 0) asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" ::"l"(&ready) : "memory");
}

extern "C" __global__ void kernel(const float*, const __grid_constant__ Desc tmpl, const float* base, float* out) {
  __shared__ Shared s;
  if (blockIdx.x == 0) { publish(s, tmpl, base); return; }  // <-- here
  if (threadIdx.x == 0) {
    unsigned v;
    do asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(&ready) : "memory"); while (!v);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(sm(&s.bar)) : "memory");
    asm volatile("fence.proxy.tensormap::generic.acquire.cta [%0], 128;" ::"l"(&published) : "memory");  // <-- here
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" ::"r"(sm(&s.bar)) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {0, 0}], [%2];"  // <-- here
                 ::"r"(sm(s.tile)), "l"(&published), "r"(sm(&s.bar)) : "memory");  // <-- here
  }
  __syncthreads();
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra L; }" ::"r"(sm(&s.bar)) : "memory");
  for (int i = threadIdx.x; i < 128; i += 32) out[i] = s.tile[i];
}
