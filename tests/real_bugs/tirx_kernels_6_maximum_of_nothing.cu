// thread: mlc-ai/TIRx-kernels#6
// bug: the first iteration compares with the row's maximum so far, which is in shared memory and was never written.
// fix: the first iteration does not read it.
// kind: uninitialized-read
// severity: error
// tiles: 3

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ volatile int row_max[128];
    for (int i = 0; i < tiles; ++i) {
        int value = in[128 * i + threadIdx.x];
#ifdef FIXED
        if (i > 0)
#endif
            value = max(value, row_max[threadIdx.x]);  // culprit
        row_max[threadIdx.x] = value;
    }
    out[threadIdx.x] = row_max[threadIdx.x];
}
