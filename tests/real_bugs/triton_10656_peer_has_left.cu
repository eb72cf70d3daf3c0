// thread: triton-lang/triton#10656
// bug: a CTA reads the shared memory of another CTA, which may have ended.
// fix: a cluster barrier before every return of a kernel with clusters.
// kind: early-exit
// grid: 2
// cluster: 2
// block: 32

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ int part[32];
    part[threadIdx.x] = in[threadIdx.x];
    cluster_sync();
    if (cluster_cta_rank() == 0) {
        int value;
        asm volatile("ld.shared::cluster.s32 %0, [%1];"  // culprit
                     : "=r"(value) : "r"(cluster_address(&part[threadIdx.x], 1)) : "memory");
        out[threadIdx.x] = value;
    }
#ifdef FIXED
    cluster_sync();
#endif
}
