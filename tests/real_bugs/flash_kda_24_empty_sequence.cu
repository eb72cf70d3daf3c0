// thread: MoonshotAI/FlashKDA#24
// bug: ordinary writes zero the state, and the only fence is in the loop: a sequence of no tiles does not run it.
// fix: a fence.proxy.async after the zeros, too (MoonshotAI/FlashKDA#25).
// kind: missing-proxy-fence
// tiles: 0

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int state[128];
    state[threadIdx.x] = 0;
#ifdef FIXED
    fence_proxy_async();
#endif
    for (int tile = 0; tile < tiles; ++tile) {
        state[threadIdx.x] += in[128 * tile + threadIdx.x];
        fence_proxy_async();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        store(target, Coordinates{0}, state);  // culprit
        commit_group();
        wait_group_read<0>();
    }
}
