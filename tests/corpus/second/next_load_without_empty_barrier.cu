// wrong: race
// The kernel has one buffer for all tiles and only a full barrier. The producer warp refills the buffer while other warps still read it (write after read; PTX ISA, Causality order: the reads are not ordered before the copy).
// launch: {"grid": [1], "block": [96], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [16, 16], "dtype": "float32"}, {"map": 0, "box_dim": [4, 16], "swizzle": "NONE"}, {"zeros": [64], "dtype": "float32"}]}
#include <cuda_tma/tma.cuh>
using cuda_tma::Barrier;
using cuda_tma::Coordinates;

extern "C" __global__ void kernel(const float*, const __grid_constant__ cuda_tma::TensorMap map, float* out) {
  __shared__ alignas(128) float tile[4][16];
  __shared__ Barrier full;
  if (threadIdx.x == 0) {
    full.init(1);
    cuda_tma::fence_barrier_init();
  }
  __syncthreads();
  const bool producer_warp = threadIdx.x >= 64;
  if (producer_warp) {
    if (cuda_tma::elect_one())
      for (int t = 0; t < 4; ++t) {
        full.arrive_expect_tx(sizeof tile);
        cuda_tma::load(tile, map, full, Coordinates{0, 4 * t});  // <-- here
        full.wait(t & 1);
      }
    return;
  }
  float sum = 0;
  for (int t = 0; t < 4; ++t) {
    full.wait(t & 1);  // <-- here
    sum += tile[threadIdx.x / 16][threadIdx.x % 16];  // <-- here
  }
  out[threadIdx.x] = sum;
}
