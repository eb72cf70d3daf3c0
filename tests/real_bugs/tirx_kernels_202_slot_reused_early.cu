// thread: mlc-ai/TIRx-kernels#202
// bug: a warp puts the next task into a slot that another warp reads, without a wait for that reader.
// fix: an mbarrier on which every reader arrives after its read.
// kind: race
// block: 64
// tiles: 4

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ int slot;
    __shared__ Barrier full, empty;
    if (threadIdx.x == 0) {
        full.init(1);
        empty.init(32);
        fence_barrier_init();
    }
    __syncthreads();
    for (int i = 0; i < tiles; ++i) {
        if (threadIdx.x == 0) {
#ifdef FIXED
            empty.wait((i & 1) ^ 1);
#else
            if (i > 0) full.wait((i & 1) ^ 1);
#endif
            slot = in[i];  // culprit
            full.arrive();
        } else if (threadIdx.x >= 32) {
            full.wait(i & 1);
            out[32 * i + threadIdx.x - 32] = slot;
            empty.arrive();
        }
    }
}
