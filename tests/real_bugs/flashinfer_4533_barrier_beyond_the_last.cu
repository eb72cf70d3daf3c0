// thread: flashinfer-ai/flashinfer#4533
// bug: each of two groups of warps reduces at a named barrier of its own, whose number is computed from that of another
//      role. The number of the second group is 16, and a CTA has the barriers 0 to 15.
// fix: take numbers that are free in this kernel.
// kind: barrier-use
// block: 128

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ int sums[128];
#ifdef FIXED
    const int number = 1 + threadIdx.x / 64;
#else
    const int number = 15 + threadIdx.x / 64;
#endif
    sums[threadIdx.x] = in[threadIdx.x];
    asm volatile("bar.sync %0, 64;" :: "r"(number) : "memory");  // culprit
    out[threadIdx.x] = sums[threadIdx.x ^ 32];
}
