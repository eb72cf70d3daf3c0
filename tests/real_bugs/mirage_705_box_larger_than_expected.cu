// thread: mirage-project/mirage#705
// bug: for a small batch the kernel expects the bytes of a clamped tile, and the tensor map still has the whole box.
// fix: clamp the box of the map, too. Here: expect the bytes of the box.
// kind: transaction-count
// box: 16 32
// block: 32

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int tile[16][32];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
#ifdef FIXED
        full.arrive_expect_tx(16 * 32 * 4);
#else
        full.arrive_expect_tx(8 * 32 * 4);
#endif
        load(tile, source, full, Coordinates{0, 0});
    }
    __syncthreads();
    full.wait(0);  // culprit
    out[threadIdx.x] = tile[0][threadIdx.x];
    __syncthreads();
}
