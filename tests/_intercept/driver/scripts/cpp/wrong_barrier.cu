// A transposition by shared memory without a barrier.
__global__ void transposed(const float* in, float* out) {
    __shared__ float tile[16][17];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 16 + threadIdx.x];
    out[threadIdx.y * 16 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];  // wrong
}

int main() {
    float *in, *out;
    cudaMalloc(&in, 1024), cudaMalloc(&out, 1024);
    cudaMemset(in, 0, 1024);
    transposed<<<1, dim3(16, 16)>>>(in, out);
    cudaDeviceSynchronize();
    cudaFree(in), cudaFree(out);
}
