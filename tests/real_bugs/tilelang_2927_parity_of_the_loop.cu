// thread: tile-ai/tilelang#2927
// bug: each iteration uses another mbarrier for the first time, and waits for the parity of the loop: for phase 1 of a
//      barrier in its phase 0, which counts as complete. Odd iterations read before the tile arrives.
// fix: the parity of that barrier's own phase.
// kind: race
// order: late
// tiles: 4

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int tile[4][128];
    __shared__ Barrier full[4];
    if (threadIdx.x == 0) {
        for (Barrier& each : full) each.init(1);
        fence_barrier_init();
    }
    __syncthreads();
    int sum = 0;
    for (int i = 0; i < tiles; ++i) {
        if (threadIdx.x == 0) {
            full[i].arrive_expect_tx(512);
            load(tile[i], source, full[i], Coordinates{128 * i});  // culprit
        }
        __syncthreads();
#ifdef FIXED
        full[i].wait(0);
#else
        full[i].wait(i & 1);
#endif
        sum += tile[i][threadIdx.x];
    }
    out[threadIdx.x] = sum;
}
