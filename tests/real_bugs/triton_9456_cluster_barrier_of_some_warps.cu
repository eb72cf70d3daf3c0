// thread: triton-lang/triton#9456
// bug: a kernel with roles for its warps executes a cluster barrier in one role only. A cluster barrier has no number
//      of threads: it waits for all threads of the cluster.
// fix: the other warps arrive, too.
// kind: deadlock
// grid: 2
// cluster: 2
// block: 64

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ int sum;
    __shared__ Barrier done;
    const unsigned rank = cluster_cta_rank();
    if (threadIdx.x == 0) done.init(1);
    __syncthreads();
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0) sum = in[rank];
        cluster_sync();
        if (threadIdx.x == 0) {
            int other;
            asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(other) : "r"(cluster_address(&sum, rank ^ 1)) : "memory");
            out[rank] = sum + other;
            done.arrive();
        }
    } else {
#ifdef FIXED
        cluster_sync();
#endif
        done.wait(0);  // culprit
    }
#ifdef FIXED
    cluster_sync();
#endif
}
