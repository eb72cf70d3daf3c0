// Programs that ask too much of a GPU: hostile_programs.py runs each below the command.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

__global__ void add_one(int* values) {
    values[threadIdx.x] += 1;
}

static void say(const char* what, cudaError_t error) {
    std::printf("%s: %s\n", what, cudaGetErrorString(error));
}

static int launches(int count) {
    int *values, first;
    cudaMalloc(&values, 128);
    cudaMemset(values, 0, 128);
    for (int i = 0; i < count; ++i)
        add_one<<<1, 32>>>(values);
    cudaMemcpy(&first, values, 4, cudaMemcpyDeviceToHost);
    std::printf("%d launches, value %d\n", count, first);
    cudaFree(values);
    return first != count;
}

static int memory() {
    const size_t large = 100ull << 30;
    void* at;
    say("cudaMalloc of 100 GiB", cudaMalloc(&at, large));
    say("cudaMallocManaged of 100 GiB", cudaMallocManaged(&at, large));
    say("cudaMallocHost of 100 GiB", cudaMallocHost(&at, large));
    say("cudaMallocAsync of 100 GiB", cudaMallocAsync(&at, large, 0));
    say("cudaMalloc of all bytes", cudaMalloc(&at, ~0ull));
    std::vector<void*> taken;
    while (taken.size() < 100 && cudaMalloc(&at, 1ull << 30) == cudaSuccess)
        taken.push_back(at);
    std::printf("%zu allocations of 1 GiB\n", taken.size());
    for (void* each : taken)
        cudaFree(each);
    return 0;
}

int main(int count, char** arguments) {
    if (count > 2 && std::strcmp(arguments[1], "launches") == 0)
        return launches(std::atoi(arguments[2]));
    if (count > 1 && std::strcmp(arguments[1], "memory") == 0)
        return memory();
    return launches(3);
}
