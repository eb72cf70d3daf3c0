// thread: facebookexperimental/triton#462
// bug: the allocator considered one mbarrier dead when it placed another: the kernel initializes both at the same
//      address, and nothing invalidates the first in between.
// fix: mbarrier.inval before the memory is used for something else.
// kind: barrier-use

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int tile[128];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(128);
#ifdef FIXED
        full.invalidate();
#endif
        full.init(1);  // culprit
        fence_barrier_init();
        full.arrive_expect_tx(sizeof(tile));
        load(tile, source, full, Coordinates{0});
    }
    __syncthreads();
    full.wait(0);
    out[threadIdx.x] = tile[threadIdx.x];
}
