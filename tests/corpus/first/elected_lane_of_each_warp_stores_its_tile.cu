// right
// After a __syncwarp, one elected lane of each warp stores the tile of its warp. Two stores are pending at once, but their tiles are disjoint, and each lane that commits a store also waits for it.
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [16, 16], "dtype": "int32"}, {"zeros": [16, 16], "dtype": "int32"}, {"map": 1, "box_dim": [8, 16], "swizzle": "NONE"}]}
// result: argument 1 equals a0 * 2 + 1
struct alignas(64) Map { char bytes[128]; };
__device__ bool elect_one() {
  int p;
  asm volatile("{ .reg .pred e; elect.sync _|e, 0xffffffff; selp.b32 %0, 1, 0, e; }" : "=r"(p));
  return p;
}

extern "C" __global__ void kernel(const int* x, int*, const __grid_constant__ Map out) {
  __shared__ alignas(128) int tiles[2][128];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = lane; i < 128; i += 32) tiles[warp][i] = 2 * x[128 * warp + i] + 1;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncwarp();
  if (elect_one()) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                 ::"l"(&out), "r"(0), "r"(8 * warp), "r"((unsigned)__cvta_generic_to_shared(tiles[warp])) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
