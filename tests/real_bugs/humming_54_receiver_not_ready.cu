// thread: inclusionAI/humming#54
// bug: the first CTA of a cluster multicasts a tile into both CTAs as soon as its own stage is free. The other CTA may
//      still read its stage, and has not armed its mbarrier.
// fix: each receiver arms its mbarrier, and then arrives at a barrier for which the first CTA waits.
// kind: race
// grid: 2
// cluster: 2
// block: 32
// tiles: 2

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int tile[128];
    __shared__ Barrier full, armed;
    const unsigned rank = cluster_cta_rank();
    if (threadIdx.x == 0) {
        full.init(1);
#ifdef FIXED
        armed.init(2);
#else
        armed.init(1);
#endif
        fence_barrier_init();
    }
    cluster_sync();
    for (int i = 0; i < tiles; ++i) {
        if (threadIdx.x == 0) {
            full.arrive_expect_tx(512);
#ifdef FIXED
            armed.arrive_at(0);
#else
            if (rank == 0) armed.arrive();
#endif
            if (rank == 0) {
                armed.wait_cluster(i % 2);
                load_multicast(tile, source, full, Coordinates{128 * i}, 3);  // culprit
            }
        }
        full.wait_cluster(i % 2);
        out[64 * i + 32 * rank + threadIdx.x] = tile[threadIdx.x];
        fence_proxy_async();
        __syncthreads();
    }
    cluster_sync();
}
