// thread: tile-ai/tilelang#2634
// bug: ordinary stores write an operand of wgmma to shared memory, and wgmma reads it through the async proxy.
// fix: fence.proxy.async between the two, as in the dense product.
// kind: missing-proxy-fence

#include <cuda_tma/tile.cuh>
#include <cuda_tma/wgmma.cuh>
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(1024) Tile<BFLOAT16, Box<64, 64>, SWIZZLE_128B> a, b;
    for (int i = threadIdx.x; i < 64 * 64; i += 128) {
        reinterpret_cast<unsigned short*>(&a)[i] = 0x3F80;  // 1
        reinterpret_cast<unsigned short*>(&b)[i] = 0x4000;  // 2
    }
#ifdef FIXED
    fence_proxy_async();
#endif
    __syncthreads();
    float sums[32];
    wgmma_fence(sums);
    wgmma(sums, k_major(a), k_major(b), false);  // culprit
    wgmma_commit();
    wgmma_wait<0>(sums);
    out[threadIdx.x] = int(sums[0]);
}
