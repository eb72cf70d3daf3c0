// wrong: race
// CTA 0 multicasts each tile to both CTAs, but waits only for the release of its own consumers. The copy may overwrite the slot of CTA 1 while CTA 1 still reads it (PTX ISA, cp.async.bulk .multicast::cluster; CUTLASS counts all consumers of the multicast).
// launch: {"grid": [1], "block": [32], "cluster": [2], "shmem_size": 0, "arguments": [{"arange": [3, 32], "dtype": "float32"}, {"zeros": [2, 3, 32], "dtype": "float32"}]}
static __device__ unsigned s32(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
static __device__ void cluster_sync() { asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory"); }

extern "C" __global__ void kernel(const float* x, float* y) {
  __shared__ alignas(128) float slot[32];
  __shared__ unsigned long long full;
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(s32(&full)) : "memory");
  cluster_sync();
  if (threadIdx.x == 0) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(s32(&full)) : "memory");
  cluster_sync();
  for (int t = 0; t < 3; ++t) {
    if (rank == 0 && threadIdx.x == 0)
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 128, [%2], %3;"  // <-- here
                   ::"r"(s32(slot)), "l"(x + 32 * t), "r"(s32(&full)), "h"((unsigned short)3) : "memory");  // <-- here
    asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra L; }" ::"r"(s32(&full)), "r"(t & 1) : "memory");
    if (threadIdx.x == 0 && t < 2) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(s32(&full)) : "memory");
    y[96 * rank + 32 * t + threadIdx.x] = slot[threadIdx.x];  // <-- here
    __syncthreads();  // The release arrives only at the barrier of this CTA.
  }
  cluster_sync();
}
