// wrong: race
// Both epilogue warps write their own half of the block's rows to shared memory, but compute the same coordinates from blockIdx. Two unordered TMA stores write different data to one tile (PTX ISA, cp.async.bulk.tensor: async operations are unordered; Data races).
// launch: {"grid": [2], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [16, 32], "dtype": "float32"}, {"map": 0, "box_dim": [4, 32], "swizzle": "NONE"}]}
struct alignas(64) Map { unsigned long long opaque[16]; };
__device__ bool elect_one() {
  unsigned p;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(p));
  return p;
}

extern "C" __global__ void kernel(float*, const __grid_constant__ Map out) {
  __shared__ alignas(128) float staging[2][4][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int r = 0; r < 4; ++r) staging[warp][r][lane] = 1000.f * blockIdx.x + 100.f * warp + 10.f * r + lane;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncwarp();
  if (elect_one()) {
    const int m = blockIdx.x * 8, n = 0;  // <-- here
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"  // <-- here
                 ::"l"(&out), "r"(n), "r"(m), "r"((unsigned)__cvta_generic_to_shared(staging[warp])) : "memory");  // <-- here
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
