// right
// A three-stage ring keeps one phase bit for each stage in a mask, and flips the bit at each use of the stage. The producer warp returns while its last copies are pending, and all consumer threads poll with try_wait.
// launch: {"grid": [2], "block": [96], "cluster": null, "shmem_size": 4096, "arguments": [{"arange": [32, 32], "dtype": "float32"}, {"map": 0, "box_dim": [2, 32], "swizzle": "NONE"}, {"zeros": [2, 64], "dtype": "float32"}]}
// result: argument 2 equals a0.reshape(2, 8, 64).sum(axis=1)
struct alignas(64) Map { unsigned long long w[16]; };
constexpr int kStages = 3, kTiles = 8;
extern __shared__ __align__(1024) char raw[];
__device__ unsigned s32(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void wait(unsigned bar, unsigned parity) {
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra D; bra L; D: }" ::"r"(bar), "r"(parity) : "memory");
}

extern "C" __global__ void kernel(const float*, const __grid_constant__ Map map, float* sums) {
  float(*tile)[64] = reinterpret_cast<float(*)[64]>(raw);
  unsigned long long* full = reinterpret_cast<unsigned long long*>(raw + 1024);
  unsigned long long* empty = full + kStages;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tmbarrier.init.shared::cta.b64 [%1], 64;" ::"r"(s32(full + i)), "r"(s32(empty + i)) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  unsigned phases = threadIdx.x < 64 ? 0u : (1u << kStages) - 1;
  if (threadIdx.x >= 64) {
    if (threadIdx.x == 64)
      for (int k = 0, st = 0; k < kTiles; ++k, st = (st + 1) % kStages) {
        wait(s32(empty + st), phases >> st & 1);
        phases ^= 1u << st;
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(s32(full + st)) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     ::"r"(s32(tile[st])), "l"(&map), "r"(0), "r"(2 * (kTiles * blockIdx.x + k)), "r"(s32(full + st)) : "memory");
      }
    return;
  }
  float sum = 0;
  for (int k = 0, st = 0; k < kTiles; ++k, st = (st + 1) % kStages) {
    wait(s32(full + st), phases >> st & 1);
    phases ^= 1u << st;
    sum += tile[st][threadIdx.x];
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(s32(empty + st)) : "memory");
  }
  sums[64 * blockIdx.x + threadIdx.x] = sum;
}
