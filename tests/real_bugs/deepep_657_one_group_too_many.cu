// thread: deepseek-ai/DeepEP#657
// bug: two stages are each loaded, then stored from. Before a stage is loaded again, wait_group leaves stages - 1 = 1
//      group pending, which reads that very stage.
// fix: wait until no store reads the stage.
// kind: race
// block: 32
// tiles: 4

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int stage[2][128];
    __shared__ Barrier full[2];
    if (threadIdx.x != 0) return;
    for (Barrier& each : full) each.init(1);
    fence_barrier_init();
    for (int i = 0; i < 2; ++i) {
        full[i].arrive_expect_tx(512);
        load_bulk(stage[i], in + 128 * i, 512, full[i]);
    }
    for (int i = 0; i < tiles; ++i) {
        full[i % 2].wait(i / 2 % 2);
        store_bulk(out + 128 * i, stage[i % 2], 512);
        commit_group();
        if (i + 2 >= tiles) continue;
#ifdef FIXED
        wait_group_read<0>();
#else
        wait_group<1>();
#endif
        full[i % 2].arrive_expect_tx(512);
        load_bulk(stage[i % 2], in + 128 * (i + 2), 512, full[i % 2]);  // culprit
    }
    wait_group<0>();
}
