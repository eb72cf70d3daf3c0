// thread: facebookexperimental/triton#2292
// bug: each CTA stores into the shared memory of the other one, without a barrier after the other one initialized it.
// fix: a cluster barrier before the store.
// kind: race
// grid: 2
// cluster: 2
// block: 32

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ int box[32];
    const unsigned rank = cluster_cta_rank();
    box[threadIdx.x] = -1;
#ifdef FIXED
    cluster_sync();
#endif
    asm volatile("st.shared::cluster.s32 [%0], %1;"  // culprit
                 :: "r"(cluster_address(&box[threadIdx.x], rank ^ 1)), "r"(in[threadIdx.x]) : "memory");
    cluster_sync();
    out[32 * rank + threadIdx.x] = box[threadIdx.x];
}
