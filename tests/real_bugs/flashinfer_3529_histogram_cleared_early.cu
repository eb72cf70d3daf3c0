// thread: flashinfer-ai/flashinfer#3529
// bug: each round ends with a read of a histogram in shared memory, and the next round begins with zeros in it, without
//      a barrier between the two.
// fix: __syncthreads() after the read.
// kind: race
// block: 64
// tiles: 2

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ int histogram[64];
    int remain = 100;
    for (int round = 0; round < tiles; ++round) {
        histogram[threadIdx.x] = 0;  // culprit
        __syncthreads();
        atomicAdd(&histogram[in[threadIdx.x] % 64], 1);
        __syncthreads();
        remain -= histogram[32];
#ifdef FIXED
        __syncthreads();
#endif
    }
    out[threadIdx.x] = remain;
}
