// thread: deepseek-ai/DeepEP#621
// bug: one CTA writes rows to global memory and releases a flag; another acquires the flag, and reads the rows by a
//      bulk copy: through the async proxy, with no proxy fence after the ordinary writes.
// fix: fence.proxy.async after the flag is seen (deepseek-ai/DeepEP#632, #642).
// kind: missing-proxy-fence
// grid: 2
// block: 32

#include <cuda_tma/scope.cuh>
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* in, int* out, int tiles) {
    __shared__ __align__(128) int rows[32];
    __shared__ Barrier full;
    int *written = out, *read = out + 32;
    unsigned* flag = reinterpret_cast<unsigned*>(out + 64);
    if (blockIdx.x == 0) {
        written[threadIdx.x] = in[threadIdx.x];
        __syncwarp();
        if (threadIdx.x == 0) store_release<Scope::gpu>(flag, 1u);
        return;
    }
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        while (!load_acquire<Scope::gpu>(flag)) continue;
#ifdef FIXED
        fence_proxy_async_all();
#endif
        full.arrive_expect_tx(sizeof(rows));
        load_bulk(rows, written, sizeof(rows), full);  // culprit
    }
    __syncwarp();
    full.wait(0);
    read[threadIdx.x] = rows[threadIdx.x];
}
