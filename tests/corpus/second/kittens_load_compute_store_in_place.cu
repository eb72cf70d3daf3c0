// right
// One warp loads a swizzled tile, computes in place and stores the tile, without a CTA barrier. Every lane executes a proxy fence before __syncwarp, and the next load follows wait_group.read (PTX ISA, fence.proxy.async; cp.async.bulk.wait_group).
// launch: {"grid": [2], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [48, 32], "dtype": "float32"}, {"map": 0, "box_dim": [8, 32], "swizzle": "128B"}, {"zeros": [48, 32], "dtype": "float32"}, {"map": 2, "box_dim": [8, 32], "swizzle": "128B"}]}
// result: argument 2 equals a0 * 3 + np.arange(32, dtype=np.float32)
namespace kittens {
struct alignas(64) tma_descriptor { unsigned long long opaque[16]; };
struct alignas(1024) st_fl_8x32 {
  float data[8 * 32];
  __device__ float& at(int r, int c) { return data[r * 32 + ((c / 4 ^ r % 8) * 4 | c % 4)]; }
};
__device__ inline unsigned addr(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ inline void wait(unsigned long long& s, int phase) {
  asm volatile("{\n.reg .pred P1;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n@P1 bra.uni DONE;\nbra.uni LAB_WAIT;\nDONE:\n}" ::"r"(addr(&s)), "r"(phase) : "memory");
}
namespace tma {
__device__ inline void load_async(st_fl_8x32& dst, const tma_descriptor& src, int r, unsigned long long& s) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(addr(&s)), "n"(sizeof(dst.data)) : "memory");
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
               ::"r"(addr(&dst)), "l"(&src), "r"(addr(&s)), "r"(0), "r"(r) : "memory");
}
__device__ inline void store_async(const tma_descriptor& dst, st_fl_8x32& src, int r) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&dst), "r"(addr(&src)), "r"(0), "r"(r) : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
__device__ inline void store_async_read_wait() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
}  // namespace tma
}  // namespace kittens
using namespace kittens;

extern "C" __global__ void kernel(const float*, const __grid_constant__ tma_descriptor in, float*, const __grid_constant__ tma_descriptor out) {
  __shared__ st_fl_8x32 tile;
  __shared__ unsigned long long arrived;
  const int lane = threadIdx.x;
  if (lane == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(addr(&arrived)) : "memory");
  __syncwarp();
  for (int i = 0, tic = 0; i < 3; ++i, tic ^= 1) {
    const int row = (blockIdx.x * 3 + i) * 8;
    if (lane == 0) {
      tma::store_async_read_wait();
      tma::load_async(tile, in, row, arrived);
    }
    wait(arrived, tic);
    for (int r = 0; r < 8; ++r) tile.at(r, lane) = tile.at(r, lane) * 3 + lane;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (lane == 0) tma::store_async(out, tile, row);
  }
  if (lane == 0) tma::store_async_read_wait();
}
