// thread: NVIDIA/cutlass#2364
// bug: mbarrier_init_tx_bytes replaces the initialization; it arrives, and expects bytes, at an uninitialized mbarrier.
// fix: initialize it first, with its number of arrivals.
// kind: barrier-use

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int tile[128];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
#ifdef FIXED
        full.init(1);
        fence_barrier_init();
#endif
        full.arrive_expect_tx(sizeof(tile));  // culprit
    }
    __syncthreads();
    if (threadIdx.x == 0) load(tile, source, full, Coordinates{0});
    full.wait(0);
    out[threadIdx.x] = tile[threadIdx.x];
}
