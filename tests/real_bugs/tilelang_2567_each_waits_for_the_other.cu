// thread: tile-ai/tilelang#2567
// bug: the compiler moved the consumer's arrival that frees a buffer after a barrier that the producer reaches only
//      after it has filled that buffer. Each thread waits for the other.
// fix: the arrival precedes that barrier.
// kind: deadlock
// block: 64

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int tile[128];
    __shared__ Barrier full, empty;
    if (threadIdx.x == 0) {
        full.init(1);
        empty.init(32);
        fence_barrier_init();
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        empty.wait(0);  // culprit
        if (threadIdx.x == 0) {
            full.arrive_expect_tx(sizeof(tile));
            load(tile, source, full, Coordinates{0});
        }
        asm volatile("bar.sync 3, 64;" ::: "memory");
    } else {
#ifdef FIXED
        empty.arrive();
        asm volatile("bar.sync 3, 64;" ::: "memory");
#else
        asm volatile("bar.sync 3, 64;" ::: "memory");
        empty.arrive();
#endif
        full.wait(0);
        out[threadIdx.x - 32] = tile[threadIdx.x];
    }
}
