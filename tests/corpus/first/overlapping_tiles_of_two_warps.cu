// wrong: race
// Two warps store boxes of 8 rows whose first rows are 6 rows apart. Both warps write different data to rows 6 and 7 (PTX ISA, Memory consistency model: overlapping writes of the async proxy are unordered).
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [16, 16], "dtype": "float32"}, {"map": 0, "box_dim": [8, 16], "swizzle": "NONE"}]}
struct alignas(64) tensor_map_t { char opaque[128]; };
constexpr int kRowsPerWarp = 6;  // The box has 8 rows.

extern "C" __global__ void kernel(float*, const __grid_constant__ tensor_map_t out_map) {
  __shared__ alignas(128) float tiles[2][8][16];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = lane; i < 128; i += 32) tiles[warp][i / 16][i % 16] = 1000.f * warp + i;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncwarp();
  if (lane == 0) {
    const unsigned src = (unsigned)__cvta_generic_to_shared(tiles[warp]);
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"  // <-- here
                 ::"l"(&out_map), "r"(0), "r"(kRowsPerWarp * warp), "r"(src) : "memory");  // <-- here
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
