// thread: NVIDIA/TensorRT-LLM#15338
// bug: a pointer to the mbarrier of a stage is computed before the loop, and the loop polls it in each stage. That
//      mbarrier is complete from the first stage on.
// fix: poll the mbarrier of the current stage.
// kind: race
// tiles: 3
// order: late

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int tile[3][128];
    __shared__ Barrier full[3];
    if (threadIdx.x == 0) {
        for (Barrier& each : full) each.init(1);
        fence_barrier_init();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 0; i < tiles; ++i) {
            full[i].arrive_expect_tx(512);
            load(tile[i], source, full[i], Coordinates{128 * i});  // culprit
        }
    }
    int sum = 0;
    for (int i = 0; i < tiles; ++i) {
#ifdef FIXED
        while (!full[i].try_wait(0)) {}
#else
        while (!full[0].try_wait(0)) {}
#endif
        sum += tile[i][threadIdx.x];
    }
    out[threadIdx.x] = sum;
    for (int i = 0; i < tiles; ++i) full[i].wait(0);
}
