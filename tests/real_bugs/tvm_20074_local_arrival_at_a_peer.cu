// thread: apache/tvm#20074
// bug: mapa maps the address of an mbarrier to another CTA, and mbarrier.arrive.shared.b64 takes this
//      address, although the instruction accesses only the executing CTA.
// fix: mbarrier.arrive.shared::cluster.
// kind: cluster
// grid: 2
// cluster: 2
// block: 32

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ Barrier ready;
    if (threadIdx.x == 0) {
        ready.init(1);
        fence_barrier_init();
    }
    cluster_sync();
    if (threadIdx.x == 0) {
#ifdef FIXED
        ready.arrive_at(cluster_cta_rank() ^ 1);
#else
        asm volatile("mbarrier.arrive.shared.b64 _, [%0];"  // culprit
                     :: "r"(cluster_address(&ready, cluster_cta_rank() ^ 1)) : "memory");
#endif
    }
    ready.wait_cluster(0);
    if (threadIdx.x == 0) out[cluster_cta_rank()] = 1;
    cluster_sync();
}
