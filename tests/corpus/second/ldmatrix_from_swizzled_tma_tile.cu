// right
// ldmatrix reads XOR-permuted addresses without a fence after the copy. TMA wrote the tile with the 128-byte swizzle, and every thread observed the phase of the mbarrier (PTX ISA, Swizzling modes; mbarrier.try_wait; ldmatrix).
// launch: {"grid": [2], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [32, 64], "dtype": "float16"}, {"map": 0, "box_dim": [16, 64], "swizzle": "128B"}, {"zeros": [32, 64], "dtype": "float16"}]}
// result: argument 2 equals a0.reshape(2, 16, 64)[:, ::-1].reshape(32, 64)
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
__device__ inline unsigned smem_addr(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ inline void ldmatrix_x4(unsigned (&r)[4], unsigned addr) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(addr) : "memory");
}
__device__ inline unsigned swizzled(unsigned tile, int row, int chunk) { return tile + row * 128 + (chunk ^ (row & 7)) * 16; }

extern "C" __global__ void kernel(const void*, const __grid_constant__ TensorMap map, unsigned* out) {
  __shared__ alignas(1024) unsigned char tile[16 * 128];
  __shared__ unsigned long long bar;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(smem_addr(&bar)) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem_addr(&bar)), "n"(sizeof(tile)) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {0, %2}], [%3];"
                 ::"r"(smem_addr(tile)), "l"(&map), "r"(16 * blockIdx.x), "r"(smem_addr(&bar)) : "memory");
  }
  __syncthreads();
  asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra W; }" ::"r"(smem_addr(&bar)) : "memory");
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int k = warp; k < 4; k += 2) {  // Each iteration reads 16 columns.
    unsigned a[4];
    ldmatrix_x4(a, swizzled(smem_addr(tile), lane % 16, 2 * k + lane / 16));
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + 8 * (i & 1), column = 16 * k + 8 * (i >> 1) + 2 * (lane % 4);
      out[((16 * blockIdx.x + 15 - row) * 64 + column) / 2] = a[i];
    }
  }
}
