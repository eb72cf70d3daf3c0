// wrong: map-mismatch, fault
// The batched variant of the load passes three coordinates to a map that the host encoded for a matrix (PTX ISA, cp.async.bulk.tensor: .dim must equal the tensor map's dimension count).
// launch: {"grid": [1], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [16, 16], "dtype": "float32"}, {"map": 0, "box_dim": [8, 16], "swizzle": "NONE"}, {"zeros": [128], "dtype": "float32"}]}
struct alignas(64) Map { char b[128]; };
__device__ void tma_load_3d(const Map* map, unsigned bar, unsigned dst, int x, int y, int batch) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];"  // <-- here
               ::"r"(dst), "l"(map), "r"(bar), "r"(x), "r"(y), "r"(batch) : "memory");  // <-- here
}

extern "C" __global__ void kernel(const float*, const __grid_constant__ Map map, float* out) {
  __shared__ alignas(128) float tile[128];
  __shared__ unsigned long long full;
  const unsigned bar = (unsigned)__cvta_generic_to_shared(&full);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(bar) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" ::"r"(bar) : "memory");
    tma_load_3d(&map, bar, (unsigned)__cvta_generic_to_shared(tile), 0, 8, 0);  // <-- here
  }
  __syncthreads();
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra L; }" ::"r"(bar) : "memory");
  for (int i = threadIdx.x; i < 128; i += 32) out[i] = tile[i];
}
