// A copy by cp.async.bulk that a cuda::barrier waits for, and a bulk store of the result.
#include <cuda/barrier>
#include <cstdio>
#include <vector>

using barrier_t = cuda::barrier<cuda::thread_scope_block>;

__global__ void doubled(const float* in, float* out) {
    __shared__ alignas(128) float tile[256];
    __shared__ barrier_t barrier;
    if (threadIdx.x == 0)
        init(&barrier, blockDim.x);
    __syncthreads();
    barrier_t::arrival_token token;
    if (threadIdx.x == 0) {
        cuda::device::memcpy_async_tx(tile, in + blockIdx.x * 256, cuda::aligned_size_t<16>(sizeof tile), barrier);
        token = cuda::device::barrier_arrive_tx(barrier, 1, sizeof tile);
    } else {
        token = barrier.arrive();
    }
    barrier.wait(std::move(token));
    out[blockIdx.x * 256 + threadIdx.x] = 2 * tile[threadIdx.x];
}

int main() {
    std::vector<float> values(1024), found(1024);
    for (int i = 0; i < 1024; ++i)
        values[i] = i;
    float *in, *out;
    cudaMalloc(&in, 4096), cudaMalloc(&out, 4096);
    cudaMemcpy(in, values.data(), 4096, cudaMemcpyHostToDevice);
    doubled<<<4, 256>>>(in, out);
    cudaMemcpy(found.data(), out, 4096, cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (int i = 0; i < 1024; ++i)
        wrong += found[i] != 2 * values[i];
    std::printf("%d of 1024 are wrong, %s\n", wrong, cudaGetErrorString(cudaGetLastError()));
    cudaFree(in), cudaFree(out);
    return wrong != 0;
}
