// thread: NVIDIA/Fuser#5448
// bug: each iteration writes shared memory and stores it by TMA; the commit and the wait are after the loop.
// fix: commit and wait in each iteration.
// kind: race
// tiles: 3

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int tile[128];
    for (int i = 0; i < tiles; ++i) {
        tile[threadIdx.x] = in[128 * i + threadIdx.x];  // culprit
        fence_proxy_async();
        __syncthreads();
        if (threadIdx.x == 0) {
            store(target, Coordinates{128 * i}, tile);
#ifdef FIXED
            commit_group();
            wait_group_read<0>();
#endif
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        commit_group();
        wait_group_read<0>();
    }
}
