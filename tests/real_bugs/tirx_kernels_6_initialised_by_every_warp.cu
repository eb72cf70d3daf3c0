// thread: mlc-ai/TIRx-kernels#6
// bug: one lane of each warp initializes the shared mbarriers, not one lane of one warp.
// fix: only warp 0 does.
// kind: barrier-use
// block: 64

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int tile[128];
    __shared__ Barrier full;
#ifdef FIXED
    if (threadIdx.x == 0) {
#else
    if (threadIdx.x % 32 == 0) {
#endif
        full.init(1);  // culprit
        fence_barrier_init();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        full.arrive_expect_tx(sizeof(tile));
        load(tile, source, full, Coordinates{0});
    }
    full.wait(0);
    out[threadIdx.x] = tile[threadIdx.x];
}
