// wrong: cluster, barrier-use, race, transaction-count
// Rank 0 multicasts as soon as its own barrier is initialized. No cluster barrier ensures that rank 1 runs and has initialized its barrier at the same offset (CUDA guide, distributed shared memory: the peer must have started; PTX ISA, mbarrier.init).
// launch: {"grid": [1], "block": [32], "cluster": [2], "shmem_size": 0, "arguments": [{"arange": [64], "dtype": "int32"}, {"zeros": [2, 64], "dtype": "int32"}]}
struct Smem { alignas(128) int tile[64]; unsigned long long full; };

extern "C" __global__ void kernel(const int* x, int* y) {
  __shared__ Smem sm;
  const unsigned bar = (unsigned)__cvta_generic_to_shared(&sm.full);
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");  // <-- here
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(bar) : "memory");  // <-- here
    if (rank == 0)
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 256, [%2], %3;"  // <-- here
                   ::"r"((unsigned)__cvta_generic_to_shared(sm.tile)), "l"(x), "r"(bar), "h"((unsigned short)0b11) : "memory");  // <-- here
  }
  __syncthreads();
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra L; }" ::"r"(bar) : "memory");  // <-- here
  for (int i = threadIdx.x; i < 64; i += 32) y[64 * rank + i] = sm.tile[i];  // <-- here
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
