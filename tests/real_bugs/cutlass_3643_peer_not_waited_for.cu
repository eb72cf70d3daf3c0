// thread: NVIDIA/cutlass#3643
// bug: each CTA of a pair loads its half, counted by its own mbarrier; the leader waits only for its own half, and then
//      reads the other's half through distributed shared memory.
// fix: the other CTA waits for its half and arrives with .release.cluster where the leader waits (NVIDIA/cutlass#3647).
// kind: race
// grid: 2
// cluster: 2

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int half[128];
    __shared__ Barrier full, peer_full;
    const unsigned rank = cluster_cta_rank();
    if (threadIdx.x == 0) {
        full.init(1);
        peer_full.init(1);
        fence_barrier_init();
    }
    cluster_sync();
    if (threadIdx.x == 0) {
        full.arrive_expect_tx(sizeof(half));
        load(half, source, full, Coordinates{128 * int(rank)});
    }
    if (rank == 0) {
        full.wait(0);
#ifdef FIXED
        peer_full.wait_cluster(0);
#endif
        int value;
        asm volatile("ld.shared::cluster.s32 %0, [%1];"  // culprit
                     : "=r"(value) : "r"(cluster_address(&half[threadIdx.x], 1)) : "memory");
        out[threadIdx.x] = half[threadIdx.x] + value;
    } else {
        full.wait(0);
        __syncthreads();
        if (threadIdx.x == 0) peer_full.arrive_at(0);
    }
    cluster_sync();
}
