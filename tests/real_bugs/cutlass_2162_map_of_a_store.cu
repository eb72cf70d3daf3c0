// thread: NVIDIA/cutlass#2162
// bug: the warps of the epilogue rewrite the tensor map of a store for the next group, without a wait for the store
//      that still uses the map. The producer has such a wait for its loads.
// fix: wait for the store before the map changes.
// kind: race
// block: 32
// tiles: 2
// order: late

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int tile[2][128];
    TensorMap* map = reinterpret_cast<TensorMap*>(out + 2048);
    for (int group = 0; group < tiles; ++group) {
        for (int i = threadIdx.x; i < 128; i += 32) tile[group][i] = in[128 * group + i];
        fence_proxy_async();
        __syncwarp();
        if (threadIdx.x == 0) {
#ifdef FIXED
            wait_group<0>();
#endif
            for (int i = 0; i < 16; ++i) map->opaque[i] = target.opaque[i];  // culprit
            fence_tensor_map_release();
            fence_tensor_map_acquire(*map);
            store(*map, Coordinates{128 * group}, tile[group]);
            commit_group();
        }
    }
    if (threadIdx.x == 0) wait_group<0>();
}
