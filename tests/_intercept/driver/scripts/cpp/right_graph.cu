// A template kernel, a stream capture, a constant, and a printed line.
#include <cstdio>

__constant__ float scale[2];

template <typename T> __global__ void scaled(T* values, int count) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count)
        values[at] = values[at] * scale[0] + scale[1];
    if (at == 0)
        printf("first %g\n", double(values[0]));
}

int main() {
    float host[100], numbers[2] = {2, 1}, *values;
    for (int i = 0; i < 100; ++i)
        host[i] = i;
    cudaMemcpyToSymbol(scale, numbers, sizeof numbers);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaMallocAsync(&values, sizeof host, stream);
    cudaStreamSynchronize(stream);
    cudaGraph_t graph;
    cudaGraphExec_t made;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    cudaMemcpyAsync(values, host, sizeof host, cudaMemcpyHostToDevice, stream);
    scaled<float><<<1, 128, 0, stream>>>(values, 100);
    cudaMemcpyAsync(host, values, sizeof host, cudaMemcpyDeviceToHost, stream);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&made, graph, 0);
    cudaGraphLaunch(made, stream);
    cudaGraphLaunch(made, stream);
    cudaStreamSynchronize(stream);
    int wrong = 0;
    for (int i = 0; i < 100; ++i)
        wrong += host[i] != 4 * i + 3;
    std::printf("%d wrong, %s\n", wrong, cudaGetErrorString(cudaGetLastError()));
    cudaFreeAsync(values, stream);
    cudaStreamSynchronize(stream);
    return wrong != 0;
}
