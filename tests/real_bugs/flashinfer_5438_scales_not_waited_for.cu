// thread: flashinfer-ai/flashinfer#5438
// bug: two tensor maps change with the expert, one of the weights and one of their scales. The producer waits for the
//      loads of the weights before it rewrites both maps, and not for the loads of the scales.
// fix: wait for the loads through each map that changes.
// kind: race
// block: 32
// tiles: 2
// order: late

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int weights[2][128], scales[2][128];
    __shared__ Barrier weights_full[2], scales_full[2];
    TensorMap* maps = reinterpret_cast<TensorMap*>(out + 2048);
    if (threadIdx.x != 0) return;
    for (int i = 0; i < 2; ++i) weights_full[i].init(1), scales_full[i].init(1);
    fence_barrier_init();
    for (int expert = 0; expert < tiles; ++expert) {
        if (expert > 0) {
            weights_full[expert - 1].wait(0);
#ifdef FIXED
            scales_full[expert - 1].wait(0);
#endif
        }
        for (int i = 0; i < 16; ++i) {
            maps[0].opaque[i] = source.opaque[i];
            maps[1].opaque[i] = source.opaque[i];  // culprit
        }
        fence_tensor_map_release();
        fence_tensor_map_acquire(maps[0]);
        fence_tensor_map_acquire(maps[1]);
        weights_full[expert].arrive_expect_tx(512);
        load(weights[expert], maps[0], weights_full[expert], Coordinates{128 * expert});
        scales_full[expert].arrive_expect_tx(512);
        load(scales[expert], maps[1], scales_full[expert], Coordinates{1024 + 128 * expert});
    }
    for (int expert = 0; expert < tiles; ++expert) {
        weights_full[expert].wait(0);
        scales_full[expert].wait(0);
        out[expert] = weights[expert][0] * scales[expert][0];
    }
}
