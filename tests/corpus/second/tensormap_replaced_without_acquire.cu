// wrong: missing-tensor-map-fence
// tensormap.replace changes a descriptor in global memory, and the same thread uses it at once. The release and acquire by fence.proxy.tensormap::generic are missing (PTX ISA, tensormap.replace; fence.proxy.tensormap).
// launch: {"grid": [1], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [8, 32], "dtype": "float32"}, {"map": 0, "box_dim": [8, 32], "swizzle": "NONE"}, {"arange": [8, 32], "dtype": "float32"}, {"zeros": [16], "dtype": "uint64"}, {"zeros": [256], "dtype": "float32"}]}
struct alignas(64) Desc { unsigned long long w[16]; };
__device__ alignas(128) Desc workspace;
__device__ unsigned sm(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

extern "C" __global__ void kernel(const float*, const __grid_constant__ Desc tmpl, const float* other, unsigned long long*, float* out) {
  __shared__ alignas(128) float tile[256];
  __shared__ alignas(8) unsigned long long bar;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 16; ++i) workspace.w[i] = tmpl.w[i];
    asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;" ::"l"(__cvta_generic_to_global(&workspace)), "l"(other) : "memory");  // <-- here
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(sm(&bar)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(sm(&bar)) : "memory");
    __threadfence();
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {0, 0}], [%2];"  // <-- here
                 ::"r"(sm(tile)), "l"(&workspace), "r"(sm(&bar)) : "memory");  // <-- here
  }
  __syncthreads();
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra L; }" ::"r"(sm(&bar)) : "memory");
  for (int i = threadIdx.x; i < 256; i += 32) out[i] = tile[i];
}
