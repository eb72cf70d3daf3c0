// thread: tile-ai/tilelang#3087
// bug: a pipelined loop has one mbarrier of its own, which completes a phase in each turn. The wait has the parity of a
//      ring of stages, i / stages % 2, and so returns at once in some turns.
// fix: the parity of the turn.
// kind: race
// order: late
// tiles: 2

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int tile[2][128];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
    }
    __syncthreads();
    int sum = 0;
    for (int i = 0; i < tiles; ++i) {
        if (threadIdx.x == 0) {
            full.arrive_expect_tx(512);
            load(tile[i % 2], source, full, Coordinates{128 * i});  // culprit
        }
        __syncthreads();
#ifdef FIXED
        full.wait(i % 2);
#else
        full.wait(i / 2 % 2);
#endif
        sum += tile[i % 2][threadIdx.x];
        fence_proxy_async();
        __syncthreads();
    }
    out[threadIdx.x] = sum;
    full.wait((tiles - 1) % 2);
}
