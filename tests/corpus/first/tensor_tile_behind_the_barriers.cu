// wrong: misaligned
// The dynamic shared memory starts with two mbarriers, and the tile follows at byte 16 (CUDA guide and PTX ISA, cp.async.bulk.tensor: the shared memory address must be a multiple of 128 bytes).
// launch: {"grid": [1], "block": [32], "cluster": null, "shmem_size": 1040, "arguments": [{"arange": [16, 16], "dtype": "float32"}, {"map": 0, "box_dim": [16, 16], "swizzle": "NONE"}, {"zeros": [256], "dtype": "float32"}]}
extern __shared__ __align__(1024) unsigned char smem[];
struct alignas(64) CUtensorMapLike { unsigned long long v[16]; };

extern "C" __global__ void kernel(const float*, const __grid_constant__ CUtensorMapLike map, float* out) {
  unsigned long long* barriers = reinterpret_cast<unsigned long long*>(smem);
  float* tile = reinterpret_cast<float*>(smem + 2 * sizeof(unsigned long long));
  const unsigned bar = (unsigned)__cvta_generic_to_shared(barriers);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(bar) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(bar) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"  // <-- here
                 ::"r"((unsigned)__cvta_generic_to_shared(tile)), "l"(&map), "r"(0), "r"(0), "r"(bar) : "memory");  // <-- here
  }
  __syncwarp();
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra L; }" ::"r"(bar) : "memory");
  for (int i = threadIdx.x; i < 256; i += 32) out[i] = tile[i];
}
