// thread: mlc-ai/TIRx-kernels#202
// bug: a warp writes to shared memory, and its first lane arrives. The arrival does not order the other lanes' writes.
// fix: __syncwarp() before the arrival.
// kind: race
// block: 64

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ int values[32];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        values[threadIdx.x] = in[threadIdx.x];
#ifdef FIXED
        __syncwarp();
#endif
        if (threadIdx.x == 0) full.arrive();
    } else {
        full.wait(0);
        out[threadIdx.x - 32] = values[threadIdx.x - 32];  // culprit
    }
}
