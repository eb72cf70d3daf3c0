// thread: NVIDIA/cutlass#3658
// bug: the multicast mask has a bit for the CTA's "peer", which a cluster of single CTAs does not have: rank 2 of 2.
// fix: no peer, no bit.
// kind: cluster
// grid: 2
// cluster: 2

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int tile[128];
    __shared__ Barrier full;
    const unsigned rank = cluster_cta_rank(), ctas = cluster_cta_count();
#ifdef FIXED
    const unsigned short mask = (1 << ctas) - 1;
#else
    const unsigned short mask = (1 << ctas) - 1 | 1 << ctas;
#endif
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(sizeof(tile));
    }
    cluster_sync();
    if (threadIdx.x == 0 && rank == 0) load_multicast(tile, source, full, Coordinates{0}, mask);  // culprit
    full.wait(0);
    out[128 * rank + threadIdx.x] = tile[threadIdx.x];
    cluster_sync();
}
