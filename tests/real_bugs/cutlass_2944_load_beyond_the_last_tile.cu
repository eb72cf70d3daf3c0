// thread: NVIDIA/cutlass#2944
// bug: while the loop drains its stages, it also issues loads of tiles beyond the last one, and no thread waits for
//      them. The CTA ends, and pending loads write its shared memory.
// fix: load only while there are tiles left (NVIDIA/cutlass#2945).
// kind: early-exit
// tiles: 4

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int stage[2][128];
    __shared__ Barrier full[2];
    if (threadIdx.x == 0) {
        for (Barrier& each : full) each.init(1);
        fence_barrier_init();
        for (int i = 0; i < 2; ++i) {
            full[i].arrive_expect_tx(512);
            load(stage[i], source, full[i], Coordinates{128 * i});
        }
    }
    __syncthreads();
    int sum = 0;
    for (int i = 0; i < tiles; ++i) {
        full[i % 2].wait(i / 2 % 2);
        sum += stage[i % 2][threadIdx.x];
        fence_proxy_async();
        __syncthreads();
#ifdef FIXED
        if (threadIdx.x == 0 && i + 2 < tiles) {
#else
        if (threadIdx.x == 0) {
#endif
            full[i % 2].arrive_expect_tx(512);
            load(stage[i % 2], source, full[i % 2], Coordinates{128 * (i + 2)});  // culprit
        }
    }
    out[threadIdx.x] = sum;
}
