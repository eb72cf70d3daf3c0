// thread: deepseek-ai/DeepGEMM#343
// bug: a grouped product has one tensor map in global memory for all groups. At a change of the group, a warp rewrites
//      the map, although loads of the last group may still read it.
// fix: wait for those loads first: commit them to a bulk group, and wait for the group.
// kind: race
// block: 32
// tiles: 2
// order: late

#include <cuda_tma/tma.cuh>
#include <cuda_tma/tensor_map_replace.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int tile[2][128];
    __shared__ __align__(128) TensorMap local;
    __shared__ Barrier full[2];
    TensorMap* map = reinterpret_cast<TensorMap*>(out + 2048);
    if (threadIdx.x == 0) {
        for (Barrier& each : full) each.init(1);
        fence_barrier_init();
        for (int i = 0; i < 16; ++i) local.opaque[i] = source.opaque[i];
    }
    for (int group = 0; group < tiles; ++group) {
        __syncwarp();
        if (threadIdx.x == 0) {
            replace_global_address(local, in + 1024 * group);
#ifdef FIXED
            commit_group();
            wait_group<0>();
#endif
        }
        __syncwarp();
        copy_tensor_map_release(map, local);  // culprit
        if (threadIdx.x == 0) {
            fence_tensor_map_acquire(*map);
            full[group].arrive_expect_tx(512);
            load(tile[group], *map, full[group], Coordinates{0});
        }
    }
    for (int group = 0; group < tiles; ++group) {
        full[group].wait(0);
        out[128 * group + threadIdx.x] = tile[group][threadIdx.x];
    }
}
