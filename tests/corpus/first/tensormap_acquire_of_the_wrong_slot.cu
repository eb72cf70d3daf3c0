// wrong: missing-tensor-map-fence
// The kernel changes two descriptors in turn, as in a grouped GEMM, but each acquire fence is for slot 0. The fence covers only 128 bytes, so the kernel uses slot 1 without an acquire (PTX ISA, fence.proxy.tensormap: acquire, addr and size).
// launch: {"grid": [1], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [8, 32], "dtype": "float32"}, {"map": 0, "box_dim": [4, 32], "swizzle": "NONE"}, {"arange": [8, 32], "dtype": "float32"}, {"zeros": [2, 128], "dtype": "float32"}]}
struct alignas(64) Desc { unsigned long long w[16]; };
struct Workspace { alignas(128) Desc slot[2]; };
__device__ Workspace ws;

extern "C" __global__ void kernel(const float*, const __grid_constant__ Desc proto, const float* groups, float* out) {
  __shared__ alignas(128) float tile[128];
  __shared__ alignas(8) unsigned long long bar_mem;
  const unsigned bar = (unsigned)__cvta_generic_to_shared(&bar_mem), dst = (unsigned)__cvta_generic_to_shared(tile);
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(bar) : "memory");
  __syncwarp();
  for (int g = 0; g < 2; ++g) {
    if (threadIdx.x < 16) ws.slot[g].w[threadIdx.x] = proto.w[threadIdx.x];  // <-- here
    __syncwarp();
    if (threadIdx.x == 0) {
      asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;" ::"l"(__cvta_generic_to_global(&ws.slot[g])), "l"(groups + 128 * g) : "memory");  // <-- here
      asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
      asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(&ws.slot[0]) : "memory");  // <-- here
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" ::"r"(bar) : "memory");
      asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {0, 0}], [%2];" ::"r"(dst), "l"(&ws.slot[g]), "r"(bar) : "memory");  // <-- here
    }
    asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra L; }" ::"r"(bar), "r"(g) : "memory");
    for (int i = threadIdx.x; i < 128; i += 32) out[128 * g + i] = tile[i];
    __syncwarp();
  }
}
