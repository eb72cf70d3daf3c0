// thread: triton-lang/triton#10415
// bug: a wait for a TMA store has .read: the source may be reused, and the destination may not be written yet. After
//      it the kernel releases a flag, and another CTA reads the destination. ThunderKittens#194 asks about the same.
// fix: wait_group without .read.
// kind: race
// grid: 2
// block: 32
// order: late

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int tile[128];
    unsigned* flag = reinterpret_cast<unsigned*>(out + 2048);
    if (blockIdx.x == 0) {
        for (int i = threadIdx.x; i < 128; i += 32) tile[i] = in[i];
        fence_proxy_async();
        __syncwarp();
        if (threadIdx.x == 0) {
            store(target, Coordinates{0}, tile);
            commit_group();
#ifdef FIXED
            wait_group<0>();
#else
            wait_group_read<0>();
#endif
            __threadfence();
            atomicExch(flag, 1);
            wait_group<0>();
        }
    } else if (threadIdx.x == 0) {
        while (atomicAdd(flag, 0) == 0) __nanosleep(100);
        __threadfence();
        out[1024] = out[5];  // culprit
    }
}
