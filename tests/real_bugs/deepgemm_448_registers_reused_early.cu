// thread: deepseek-ai/DeepGEMM#448
// bug: wgmma reads one operand from registers, and the loop writes the next operand into these registers before the
//      product is complete.
// fix: wgmma.wait_group before the registers change.
// kind: wgmma-order
// tiles: 3

#include <cuda_tma/tma.cuh>
#include <cuda_tma/wgmma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(1024) unsigned short b[8][64];
    for (int i = threadIdx.x; i < 512; i += 128) b[i / 64][i % 64] = 0x3F80;
    fence_proxy_async();
    __syncthreads();
    float sums[4] = {};
    unsigned a[4];
#pragma unroll 1
    for (int i = 0; i < tiles; ++i) {
        for (int j = 0; j < 4; ++j) {
            asm volatile("ld.global.u32 %0, [%1];" : "=r"(a[j]) : "l"(in + 128 * i + 4 * j));  // culprit
        }
        wgmma_fence();
        wgmma(sums, a, k_major(b), i > 0);
        wgmma_commit();
#ifdef FIXED
        wgmma_wait<0>(sums);
#endif
    }
    wgmma_wait<0>(sums);
    out[threadIdx.x] = int(sums[0] + sums[1] + sums[2] + sums[3]);
}
