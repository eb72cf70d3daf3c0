// A bulk copy of 256 floats whose barrier expects 256 bytes.
#include <cuda/barrier>

using barrier_t = cuda::barrier<cuda::thread_scope_block>;

__global__ void copied(const float* in, float* out) {
    __shared__ alignas(128) float tile[256];
    __shared__ barrier_t barrier;
    if (threadIdx.x == 0)
        init(&barrier, blockDim.x);
    __syncthreads();
    barrier_t::arrival_token token;
    if (threadIdx.x == 0) {
        cuda::device::memcpy_async_tx(tile, in, cuda::aligned_size_t<16>(sizeof tile), barrier);
        token = cuda::device::barrier_arrive_tx(barrier, 1, 256);  // wrong
    } else {
        token = barrier.arrive();
    }
    barrier.wait(std::move(token));
    out[threadIdx.x] = tile[threadIdx.x];
}

int main() {
    float *in, *out;
    cudaMalloc(&in, 1024), cudaMalloc(&out, 1024);
    cudaMemset(in, 0, 1024);
    copied<<<1, 256>>>(in, out);
    cudaDeviceSynchronize();
    cudaFree(in), cudaFree(out);
}
