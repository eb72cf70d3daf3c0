// A sum by shared memory, shuffles and an atomic, with cooperative groups, managed memory and events.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdio>

namespace cg = cooperative_groups;

__global__ void sum(const int* values, int count, int* total) {
    __shared__ int parts[8];
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    int own = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        own += values[i];
    own = cg::reduce(warp, own, cg::plus<int>());
    if (warp.thread_rank() == 0)
        parts[warp.meta_group_rank()] = own;
    block.sync();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 8; ++i)
            own += parts[i];
        atomicAdd(total, own);
    }
}

int main() {
    int *values, *total;
    cudaMallocManaged(&values, 4000), cudaMallocManaged(&total, 4);
    for (int i = 0; i < 1000; ++i)
        values[i] = i;
    *total = 0;
    cudaEvent_t begin, end;
    cudaEventCreate(&begin), cudaEventCreate(&end);
    cudaEventRecord(begin);
    sum<<<2, 256>>>(values, 1000, total);
    cudaEventRecord(end);
    cudaDeviceSynchronize();
    int found = *total;
    std::printf("%d, %s\n", found, cudaGetErrorString(cudaGetLastError()));
    cudaFree(values), cudaFree(total);
    return found != 499500;
}
