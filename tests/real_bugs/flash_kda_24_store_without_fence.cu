// thread: MoonshotAI/FlashKDA#24
// bug: threads convert the state to float32 in shared memory; only __syncthreads() is between that and the TMA store.
// fix: each thread that wrote executes a fence.proxy.async before the barrier (MoonshotAI/FlashKDA#25).
// kind: missing-proxy-fence

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int state[128];
    state[threadIdx.x] = 2 * in[threadIdx.x];
#ifdef FIXED
    fence_proxy_async();
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        store(target, Coordinates{0}, state);  // culprit
        commit_group();
        wait_group_read<0>();
    }
}
