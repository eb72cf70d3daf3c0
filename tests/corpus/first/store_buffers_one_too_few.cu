// wrong: race
// The kernel has two staging buffers, but wait_group.read 1 follows the refill of a buffer instead of preceding it. At the third tile, the store of the buffer may still read it (PTX ISA, cp.async.bulk.wait_group.read: sources may be modified only after it).
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [5, 64], "dtype": "float32"}, {"map": 0, "box_dim": [1, 64], "swizzle": "NONE"}]}
struct alignas(64) TmaMap { char raw[128]; };
__device__ __forceinline__ void tma_store_wait_one() { asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory"); }

extern "C" __global__ void kernel(float*, const __grid_constant__ TmaMap map) {
  __shared__ alignas(128) float stage[2][64];
  for (int t = 0; t < 5; ++t) {
    float* buffer = stage[t % 2];
    buffer[threadIdx.x] = 64.f * t + threadIdx.x;  // <-- here
    if (threadIdx.x == 0) tma_store_wait_one();  // <-- here
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
      asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"  // <-- here
                   ::"l"(&map), "r"(0), "r"(t), "r"((unsigned)__cvta_generic_to_shared(buffer)) : "memory");  // <-- here
      asm volatile("cp.async.bulk.commit_group;");
    }
  }
  if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
