// thread: tile-ai/TileOPs#1550
// bug: the thread that issued a store waits for it, and the other threads refill the tile without a barrier after
//      that wait.
// fix: a named barrier of the warpgroup before each refill.
// kind: race
// block: 128
// tiles: 3

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int tile[128];
    for (int i = 0; i < tiles; ++i) {
#ifdef FIXED
        asm volatile("bar.sync 1, 128;" ::: "memory");
#endif
        tile[threadIdx.x] = in[128 * i + threadIdx.x];  // culprit
        fence_proxy_async();
        asm volatile("bar.sync 2, 128;" ::: "memory");
        if (threadIdx.x == 0) {
            store(target, Coordinates{128 * i}, tile);
            commit_group();
            wait_group<0>();
        }
    }
}
