// thread: deepseek-ai/DeepGEMM#429
// bug: the number of tiles of a group is odd, so a pair of CTAs works on two groups whose loops have different lengths.
//      A stage is free if both CTAs have released it, and one of them no longer does.
// fix: a pair works on one group only.
// kind: deadlock
// grid: 2
// cluster: 2
// block: 32
// tiles: 4

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int tile[128];
    __shared__ Barrier full, empty;
    const unsigned rank = cluster_cta_rank();
    if (threadIdx.x == 0) {
        full.init(1);
        empty.init(2);
        fence_barrier_init();
    }
    cluster_sync();
#ifdef FIXED
    const int turns = tiles;
#else
    const int turns = rank == 0 ? tiles : tiles - 2;
#endif
    if (threadIdx.x == 0) {
        for (int i = 0; i < turns; ++i) {
            if (i > 0) empty.wait_cluster((i - 1) % 2);  // culprit
            full.arrive_expect_tx(512);
            load(tile, source, full, Coordinates{128 * i});
            full.wait(i % 2);
            out[128 * rank + i] = tile[0];
            fence_proxy_async();
            empty.arrive_at(0);
            empty.arrive_at(1);
        }
    }
    cluster_sync();
}
