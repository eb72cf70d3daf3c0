// thread: MoonshotAI/FlashKDA#24
// bug: an ordinary write initializes an mbarrier, and a TMA load then counts its bytes there through the async proxy.
// fix: fence.mbarrier_init after the initialization, as in CUTLASS (MoonshotAI/FlashKDA#25). Others consider the
//      barrier between the two sufficient (facebookexperimental/triton#1553), so it is advice.
// kind: missing-proxy-fence
// severity: advice

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int tile[128];
    __shared__ Barrier full;
    if (threadIdx.x == 32) {
        full.init(1);
#ifdef FIXED
        fence_barrier_init();
#endif
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        full.arrive_expect_tx(sizeof(tile));
        load(tile, source, full, Coordinates{0});  // culprit
    }
    full.wait(0);
    out[threadIdx.x] = tile[threadIdx.x];
}
