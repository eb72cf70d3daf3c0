// wrong: transaction-count, deadlock
// The tile has a padded leading dimension in shared memory, and the producer expects the size of the padded array. The row copies transfer only the unpadded bytes, so the phase never completes (PTX ISA, mbarrier phase completion: tx-count must reach zero).
// launch: {"grid": [1], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [8, 32], "dtype": "float32"}, {"zeros": [32], "dtype": "float32"}]}
template <typename T, int Rows, int Cols, int Pad>
struct PaddedTile {
  alignas(16) T row[Rows][Cols + Pad];
};
using Tile = PaddedTile<float, 8, 32, 4>;

__device__ __forceinline__ unsigned u(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

extern "C" __global__ void kernel(const float* in, float* out) {
  __shared__ Tile tile;
  __shared__ unsigned long long bar;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(u(&bar)));  // <-- here
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(u(&bar)), "n"(sizeof(Tile)) : "memory");  // <-- here
  }
  __syncthreads();
  auto copy_row = [&](int r) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"
                 ::"r"(u(tile.row[r])), "l"(in + 32 * r), "r"(u(&bar)) : "memory");
  };
  if (threadIdx.x < 8) copy_row(threadIdx.x);  // <-- here
  asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra again; }" ::"r"(u(&bar)) : "memory");  // <-- here
  float s = 0;
  for (int r = 0; r < 8; ++r) s += tile.row[r][threadIdx.x];
  out[threadIdx.x] = s;
}
