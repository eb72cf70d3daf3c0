// thread: facebookexperimental/triton#652
// bug: a CTA arrives at an mbarrier of the other CTA before that CTA may have initialized it.
// fix: a cluster barrier after the initialization.
// kind: barrier-use
// grid: 2
// cluster: 2
// block: 32

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ Barrier ready;
    const unsigned rank = cluster_cta_rank();
    if (threadIdx.x == 0) {
        ready.init(1);
        fence_barrier_init();
    }
#ifdef FIXED
    cluster_sync();
#else
    __syncthreads();
#endif
    if (threadIdx.x == 0) ready.in_cta(rank ^ 1).arrive();  // culprit
    ready.wait_cluster(0);
    if (threadIdx.x == 0) out[rank] = 1;
    cluster_sync();
}
