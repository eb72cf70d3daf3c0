// right
// CTA 0 writes rows into the one slot of CTA 1, and receives a credit for each row. Each remote arrive releases and each wait acquires at cluster scope, so the reuse of the slot is ordered without a cluster barrier in the loop.
// launch: {"grid": [1], "block": [32], "cluster": [2], "shmem_size": 0, "arguments": [{"arange": [4, 32], "dtype": "int32"}, {"zeros": [4, 32], "dtype": "int32"}]}
// result: argument 1 equals a0 ^ 5
struct Mailbox { int slot[32]; unsigned long long filled, credit; };
__device__ unsigned map(const void* p, unsigned rank) {
  unsigned r;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"((unsigned)__cvta_generic_to_shared(p)), "r"(rank));
  return r;
}
__device__ void signal(unsigned bar) { asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory"); }
__device__ void await(const void* bar, unsigned parity) {
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1; @!p bra L; }" ::"r"((unsigned)__cvta_generic_to_shared(bar)), "r"(parity) : "memory");
}
__device__ void cluster_sync() { asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory"); }

extern "C" __global__ void kernel(const int* x, int* y) {
  __shared__ Mailbox box;
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x < 2)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;\n\tfence.mbarrier_init.release.cluster;" ::"r"((unsigned)__cvta_generic_to_shared(threadIdx.x ? &box.credit : &box.filled)) : "memory");
  cluster_sync();
  for (int i = 0; i < 4; ++i) {
    if (rank == 0) {
      if (i) await(&box.credit, (i - 1) & 1);
      asm volatile("st.shared::cluster.s32 [%0], %1;" ::"r"(map(&box.slot[threadIdx.x], 1)), "r"(x[32 * i + threadIdx.x] ^ 5) : "memory");
      signal(map(&box.filled, 1));
    } else {
      await(&box.filled, i & 1);
      y[32 * i + threadIdx.x] = box.slot[threadIdx.x];
      signal(map(&box.credit, 0));
    }
  }
  cluster_sync();
}
