// right
// A block changes a descriptor in global memory with ordinary stores, and another block copies with this descriptor. Release and acquire fences of the tensormap proxy at gpu scope surround a flag with release and acquire (PTX ISA, fence.proxy.tensormap::generic; tensormap.replace).
// launch: {"grid": [3], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [4, 32], "dtype": "float32"}, {"map": 0, "box_dim": [4, 32], "swizzle": "NONE"}, {"arange": [3, 4, 32], "dtype": "float32"}, {"zeros": [2, 4, 32], "dtype": "float32"}]}
// result: argument 3 equals a2[1:] * 2
struct alignas(128) Descriptor { unsigned long long w[16]; };
__device__ Descriptor descriptors[3];
__device__ unsigned descriptors_ready;
static __device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ void publish(const Descriptor& prototype, const float* groups) {  // One thread executes this branch.
  for (int g = 1; g < 3; ++g) {
    for (int i = 0; i < 16; ++i) descriptors[g].w[i] = prototype.w[i];
    asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;" ::"l"(__cvta_generic_to_global(&descriptors[g])), "l"(groups + g * 128) : "memory");
  }
  asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
  asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(__cvta_generic_to_global(&descriptors_ready)) : "memory");
}

extern "C" __global__ void kernel(const float*, const __grid_constant__ Descriptor prototype, const float* groups, float* out) {
  __shared__ alignas(128) float tile[128];
  __shared__ unsigned long long bar;
  const int group = blockIdx.x;
  if (group == 0) {
    if (threadIdx.x == 0) publish(prototype, groups);
    return;
  }
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(shared_address(&bar)) : "memory");
    unsigned ready;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(ready) : "l"(__cvta_generic_to_global(&descriptors_ready)) : "memory");
    while (!ready);
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(&descriptors[group]) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" ::"r"(shared_address(&bar)) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {0, 0}], [%2];"
                 ::"r"(shared_address(tile)), "l"(&descriptors[group]), "r"(shared_address(&bar)) : "memory");
  }
  __syncwarp();
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra L; }" ::"r"(shared_address(&bar)) : "memory");
  for (int i = threadIdx.x; i < 128; i += 32) out[(group - 1) * 128 + i] = tile[i] * 2;
}
