// thread: uccl-project/mKernel#18
// bug: one tile is an input stage, and later the output that TMA stores. The wait for that store is in a fixed turn of
//      the loop of the next task, which is the turn that reuses the tile for some lengths only.
// fix: wait at the start of each task.
// kind: race
// block: 32
// tiles: 2

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int stage[2][128];
    __shared__ Barrier full[2];
    if (threadIdx.x != 0) return;
    for (Barrier& each : full) each.init(1);
    fence_barrier_init();
    int turn = 0;
    for (int task = 0; task < tiles; ++task) {
#ifdef FIXED
        wait_group_read<0>();
#endif
        for (int i = 0; i < 3; ++i, ++turn) {
#ifndef FIXED
            if (i == 1) wait_group_read<0>();
#endif
            full[turn % 2].arrive_expect_tx(512);
            load(stage[turn % 2], source, full[turn % 2], Coordinates{128 * turn});  // culprit
            full[turn % 2].wait(turn / 2 % 2);
        }
        store(target, Coordinates{128 * task}, stage[turn % 2]);
        commit_group();
    }
    wait_group<0>();
}
