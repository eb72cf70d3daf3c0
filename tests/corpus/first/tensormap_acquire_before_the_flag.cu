// wrong: missing-tensor-map-fence, race
// Block 1 executes the acquire proxy fence for the descriptor before it reads the flag that block 0 sets after the change. No acquire follows the read of the flag (PTX ISA, fence.proxy.tensormap: the acquire must follow the synchronization with the writer).
// launch: {"grid": [2], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [4, 32], "dtype": "float32"}, {"map": 0, "box_dim": [4, 32], "swizzle": "NONE"}, {"arange": [4, 32], "dtype": "float32"}, {"zeros": [128], "dtype": "float32"}]}
struct alignas(64) Map { unsigned long long q[16]; };
__device__ alignas(128) Map g_map;
__device__ int g_flag;
__device__ inline unsigned s32(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

extern "C" __global__ void kernel(const float*, const __grid_constant__ Map proto, const float* x, float* y) {
  __shared__ alignas(128) float tile[128];
  __shared__ unsigned long long bar;
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) {
      for (int i = 0; i < 16; ++i) g_map.q[i] = proto.q[i];  // <-- here
      asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;" ::"l"(__cvta_generic_to_global(&g_map)), "l"(x) : "memory");  // <-- here
      asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
      asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(__cvta_generic_to_global(&g_flag)) : "memory");
    }
    return;
  }
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(s32(&bar)) : "memory");
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(&g_map) : "memory");  // <-- here
    int f = 0;
    while (!f) asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(f) : "l"(__cvta_generic_to_global(&g_flag)) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" ::"r"(s32(&bar)) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %2}], [%3];"  // <-- here
                 ::"r"(s32(tile)), "l"(&g_map), "r"(0), "r"(s32(&bar)) : "memory");  // <-- here
  }
  __syncwarp();
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra L; }" ::"r"(s32(&bar)) : "memory");
  for (int i = threadIdx.x; i < 128; i += 32) y[i] = tile[i];
}
