// thread: NVIDIA/TransformerEngine#3417
// bug: one thread issues the stores, and every thread calls wait_group.read: in the other threads it returns at once,
//      because each thread has its own groups. These threads write into the buffer that TMA still reads.
// fix: the issuing thread waits, and a barrier synchronizes the others.
// kind: race
// tiles: 3

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int tile[128];
    for (int i = 0; i < tiles; ++i) {
        wait_group_read<0>();
#ifdef FIXED
        __syncthreads();
#endif
        tile[threadIdx.x] = in[128 * i + threadIdx.x];  // culprit
        fence_proxy_async();
        __syncthreads();
        if (threadIdx.x == 0) {
            store(target, Coordinates{128 * i}, tile);
            commit_group();
        }
    }
    wait_group_read<0>();
}
