// right
// All threads of both CTAs add to the same shared counters of rank 0 by red.async, without a barrier before the counters are read. red.async is an atomic reduction that completes its bytes on the mbarrier, and rank 0 waits for all bytes (PTX ISA, red.async; mbarrier.try_wait).
// launch: {"grid": [1], "block": [64], "cluster": [2], "shmem_size": 0, "arguments": [{"arange": [2, 64], "dtype": "uint32"}, {"zeros": [8], "dtype": "uint32"}]}
// result: argument 1 equals a0.reshape(16, 8).sum(axis=0, dtype=np.uint32)
struct alignas(16) Counters {
  unsigned bin[8];
  unsigned long long done;
};
__device__ unsigned at_rank_zero(const void* p) {
  unsigned a;
  asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(a) : "r"((unsigned)__cvta_generic_to_shared(p)));
  return a;
}
__device__ void cluster_sync() { asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory"); }

extern "C" __global__ void kernel(const unsigned* values, unsigned* sums) {
  __shared__ Counters counters;
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  const unsigned done = (unsigned)__cvta_generic_to_shared(&counters.done);
  if (threadIdx.x < 8) counters.bin[threadIdx.x] = 0;
  if (rank == 0 && threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(done) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(done), "n"(2 * 64 * 4) : "memory");
  }
  cluster_sync();
  asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];"
               ::"r"(at_rank_zero(&counters.bin[threadIdx.x % 8])), "r"(values[rank * 64 + threadIdx.x]), "r"(at_rank_zero(&counters.done)) : "memory");
  if (rank != 0) return;
  asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0; @!p bra W; }" ::"r"(done) : "memory");
  if (threadIdx.x < 8) sums[threadIdx.x] = counters.bin[threadIdx.x];
}
