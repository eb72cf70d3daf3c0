// thread: sgl-project/sglang#39124
// bug: ordinary stores write results to shared memory, and a bulk copy reads them through the async proxy.
// fix: fence.proxy.async in the writing threads, before the barrier.
// kind: missing-proxy-fence
// block: 32

#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int results[32];
    results[threadIdx.x] = in[threadIdx.x] + 1;
#ifdef FIXED
    fence_proxy_async();
#endif
    __syncwarp();
    if (threadIdx.x == 0) {
        store_bulk(out, results, sizeof(results));  // culprit
        commit_group();
        wait_group<0>();
    }
}
