// right
// All blocks reduce into one global tile by TMA at the same time, wait for the whole bulk group, wait at a grid barrier, and read the tile with ordinary loads. Reductions are atomic per element, and wait_group without .read makes the writes visible.
// launch: {"grid": [3], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [4, 16], "dtype": "float32"}, {"map": 0, "box_dim": [4, 16], "swizzle": "NONE"}, {"zeros": [1], "dtype": "int32"}, {"zeros": [3, 64], "dtype": "float32"}]}
// result: argument 3 equals np.tile(3 * np.arange(64) + 3, (3, 1))
struct alignas(64) TensorMap { unsigned long long w[16]; };

extern "C" __global__ void kernel(float* total, const __grid_constant__ TensorMap map, int* arrived, float* copies) {
  __shared__ alignas(128) float part[64];
  const int t = threadIdx.x;
  part[t] = t + blockIdx.x;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (t == 0) {
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {0, 0}], [%1];" ::"l"(&map), "r"((unsigned)__cvta_generic_to_shared(part)) : "memory");
    asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
    asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(arrived) : "memory");
    int seen;
    do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(arrived) : "memory"); while (seen != 3);
  }
  __syncthreads();
  copies[64 * blockIdx.x + t] = total[t];
}
