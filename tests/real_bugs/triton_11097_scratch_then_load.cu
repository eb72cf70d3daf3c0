// thread: triton-lang/triton#11097
// bug: scratch memory of a reduction, written by ordinary stores, becomes a TMA load's destination without a fence.
// fix: the compiler emits fence.proxy.async there, too.
// kind: missing-proxy-fence
// block: 64

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int scratch[128];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
    }
    scratch[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    const int neighbour = scratch[threadIdx.x ^ 1];
#ifdef FIXED
    fence_proxy_async();
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        full.arrive_expect_tx(sizeof(scratch));
        load(scratch, source, full, Coordinates{0});  // culprit
    }
    full.wait(0);
    out[threadIdx.x] = scratch[threadIdx.x] + neighbour;
}
