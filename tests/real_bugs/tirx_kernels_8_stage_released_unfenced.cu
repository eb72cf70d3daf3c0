// thread: mlc-ai/TIRx-kernels#8
// bug: consumers read a stage's weights by ordinary loads and release the stage, which TMA then overwrites.
// fix: fence.proxy.async after the reads, before the release.
// kind: missing-proxy-fence
// severity: advice
// block: 64
// tiles: 4

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int stage[2][128];
    __shared__ Barrier full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; ++i) full[i].init(1), empty[i].init(32);
        fence_barrier_init();
    }
    __syncthreads();
    for (int i = 0; i < tiles; ++i) {
        const int at = i % 2, parity = i / 2 % 2;
        if (threadIdx.x == 0) {
            empty[at].wait(parity ^ 1);
            full[at].arrive_expect_tx(512);
            load(stage[at], source, full[at], Coordinates{128 * i});  // culprit
        } else if (threadIdx.x >= 32) {
            full[at].wait(parity);
            out[32 * i + threadIdx.x - 32] = stage[at][threadIdx.x];
#ifdef FIXED
            fence_proxy_async();
#endif
            empty[at].arrive();
        }
    }
}
