// thread: NVIDIA/TransformerEngine#2695
// bug: threads read a stage by ordinary loads; after a __syncthreads() TMA writes the next stage's bytes over it, with
//      no proxy fence between them. The requirement of the ISA is disputed here, so it is advice.
// fix: fence.proxy.async after the reads, before the barrier.
// kind: missing-proxy-fence
// severity: advice
// tiles: 3

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int tile[128];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
    }
    __syncthreads();
    int sum = 0;
    for (int i = 0; i < tiles; ++i) {
        if (threadIdx.x == 0) {
            full.arrive_expect_tx(sizeof(tile));
            load(tile, source, full, Coordinates{128 * i});  // culprit
        }
        full.wait(i & 1);
        sum += tile[threadIdx.x];
#ifdef FIXED
        fence_proxy_async();
#endif
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}
