// right
// Each CTA multicasts half of a tile, so bytes may arrive at the full barrier of a peer before the peer expects them. The pending arrival of the peer keeps that phase open, and a refill waits for the consumers of both CTAs (CUTLASS multicast pipeline; PTX ISA, mbarrier tx-count).
// launch: {"grid": [1], "block": [64], "cluster": [2], "shmem_size": 0, "arguments": [{"arange": [5, 64], "dtype": "float32"}, {"zeros": [2, 32], "dtype": "float32"}]}
// result: argument 1 equals np.stack([a0[:, :32].sum(axis=0) + a0[:, 32:].sum(axis=0) * s for s in (np.float32(1), np.float32(2))])
constexpr int kStages = 2, kTiles = 5;
struct alignas(128) Storage {
  float tile[kStages][64];
  unsigned long long full[kStages], empty[kStages];
};
static __device__ unsigned sm(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
static __device__ void wait(const void* b, unsigned parity) {
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1; @!p bra L; }" ::"r"(sm(b)), "r"(parity) : "memory");
}
static __device__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
static __device__ void release_in(const void* b, int cta) {
  asm volatile("{ .reg .b32 a; mapa.shared::cluster.u32 a, %0, %1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [a]; }" ::"r"(sm(b)), "r"(cta) : "memory");
}

extern "C" __global__ void kernel(const float* x, float* out) {
  __shared__ Storage s;
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(sm(&s.full[i])) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(sm(&s.empty[i])) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  cluster_sync();
  if (threadIdx.x == 0) {
    for (int k = 0; k < kTiles; ++k) {
      const int st = k % kStages;
      wait(&s.empty[st], k / kStages & 1 ^ 1);
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(sm(&s.full[st])) : "memory");
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 128, [%2], %3;"
                   ::"r"(sm(s.tile[st] + 32 * rank)), "l"(x + k * 64 + 32 * rank), "r"(sm(&s.full[st])), "h"((unsigned short)3) : "memory");
    }
  } else if (threadIdx.x >= 32) {
    const int lane = threadIdx.x - 32;
    float sum = 0;
    for (int k = 0; k < kTiles; ++k) {
      const int st = k % kStages;
      wait(&s.full[st], k / kStages & 1);
      sum += s.tile[st][lane] + s.tile[st][32 + lane] * (rank + 1);
      __syncwarp();
      if (lane < 2) release_in(&s.empty[st], lane);
    }
    out[rank * 32 + lane] = sum;
  }
  __syncwarp();
  cluster_sync();
}
