// wrong: cluster, early-exit, race
// Rank 1 has no rows and returns after the initialization of the cluster. Rank 0 still multicasts with a mask of both CTAs (CUDA guide, distributed shared memory: the target CTA must not have exited).
// launch: {"grid": [1], "block": [32], "cluster": [2], "shmem_size": 0, "arguments": [{"arange": [32], "dtype": "float32"}, {"zeros": [32], "dtype": "float32"}, {"scalar": 32, "dtype": "int32"}]}
namespace cluster {
__device__ int rank() { int r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ void sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
}  // namespace cluster

extern "C" __global__ void kernel(const float* x, float* y, int n) {
  __shared__ alignas(128) float tile[32];
  __shared__ unsigned long long mbar;
  const unsigned bar = (unsigned)__cvta_generic_to_shared(&mbar);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(bar) : "memory");
  }
  cluster::sync();
  if (32 * cluster::rank() >= n) return;  // <-- here
  if (threadIdx.x == 0)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 128, [%2], %3;"  // <-- here
                 ::"r"((unsigned)__cvta_generic_to_shared(tile)), "l"(x), "r"(bar), "h"((unsigned short)3) : "memory");  // <-- here
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra L; }" ::"r"(bar) : "memory");
  y[threadIdx.x] = tile[threadIdx.x];
}  // <-- here
