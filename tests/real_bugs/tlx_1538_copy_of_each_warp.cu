// thread: facebookexperimental/triton#1538
// bug: one thread of each warp issues the bulk copy to the other CTA, so all its bytes arrive once for each warp.
// fix: one thread of warp 0 issues it.
// kind: race
// grid: 2
// cluster: 2
// block: 64

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int mine[128], theirs[128];
    __shared__ Barrier full;
    const unsigned rank = cluster_cta_rank();
    for (int i = threadIdx.x; i < 128; i += 64) mine[i] = in[128 * rank + i];
    fence_proxy_async_cluster();
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(sizeof(theirs));
    }
    cluster_sync();
#ifdef FIXED
    if (threadIdx.x < 32 && elect_one()) send_bulk(theirs, rank ^ 1, mine, sizeof(mine), full);
#else
    if (elect_one()) send_bulk(theirs, rank ^ 1, mine, sizeof(mine), full);  // culprit
#endif
    full.wait_cluster(0);
    out[128 * rank + threadIdx.x] = theirs[threadIdx.x];
    cluster_sync();
}
