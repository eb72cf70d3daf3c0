// thread: NVIDIA/cutlass#3189
// bug: "I was not grouping (tile_M, tile_K)": the partitioned copy of a tile of rank 2 moved less than the tile whose
//      bytes the mbarrier expects, and the wait never ended. Here: one box of 4 rows of a tile of 8.
// fix: the copy gets the whole tile.
// kind: transaction-count
// box: 4 32

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int tile[8][32];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(sizeof(tile));
        load(tile[0], source, full, Coordinates{0, 0});
#ifdef FIXED
        load(tile[4], source, full, Coordinates{0, 4});
#endif
    }
    __syncthreads();
    full.wait(0);  // culprit
    out[threadIdx.x] = tile[threadIdx.x / 32][threadIdx.x % 32];
}
