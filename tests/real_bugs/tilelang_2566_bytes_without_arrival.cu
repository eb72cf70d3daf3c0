// thread: tile-ai/tilelang#2566
// bug: a loop of one iteration has a 1-D bulk copy, for which the compiler emits an expect_tx at the mbarrier, but no
//      arrival: all bytes come, and the phase never completes.
// fix: mbarrier.arrive.expect_tx, as for other copies.
// kind: deadlock

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int tile[128];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
#ifdef FIXED
        full.arrive_expect_tx(sizeof(tile));
#else
        full.expect_tx(sizeof(tile));
#endif
        load_bulk(tile, in, sizeof(tile), full);
    }
    __syncthreads();
    full.wait(0);  // culprit
    out[threadIdx.x] = tile[threadIdx.x];
}
