// thread: NVIDIA/cutlass#3643
// bug: a CTA writes its part and arrives at the leader's mbarrier with .release.cta: the leader, in another CTA,
//      receives the arrival, but its wait does not order the writes.
// fix: .release.cluster, and .acquire.cluster where the leader waits (NVIDIA/cutlass#3647).
// kind: race
// grid: 2
// cluster: 2
// block: 32

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ int part[32];
    __shared__ Barrier ready;
    const unsigned rank = cluster_cta_rank();
    if (threadIdx.x == 0) {
        ready.init(32);
        fence_barrier_init();
    }
    cluster_sync();
    if (rank == 1) {
        part[threadIdx.x] = in[threadIdx.x];
#ifdef FIXED
        ready.arrive_at(0);
#else
        ready.in_cta(0).release_async_read();
#endif
    } else {
        ready.wait_cluster(0);
        int value;
        asm volatile("ld.shared::cluster.s32 %0, [%1];"  // culprit
                     : "=r"(value) : "r"(cluster_address(&part[threadIdx.x], 1)) : "memory");
        out[threadIdx.x] = value;
    }
    cluster_sync();
}
