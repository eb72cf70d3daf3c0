// wrong: cluster, race, barrier-use
// st.async writes into the shared memory of the peer but signals the mbarrier of the sender, so the peer receives no signal (PTX ISA, st.async: the destination and the mbarrier must lie in the shared memory of the same CTA).
// launch: {"grid": [1], "block": [32], "cluster": [2], "shmem_size": 0, "arguments": [{"arange": [2, 32], "dtype": "int32"}, {"zeros": [2, 32], "dtype": "int32"}]}
struct Mailbox {
  int letter[32];
  unsigned long long bar;
};
__device__ __forceinline__ unsigned map_to(const void* p, unsigned rank) {
  unsigned r;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"((unsigned)__cvta_generic_to_shared(p)), "r"(rank));
  return r;
}

extern "C" __global__ void kernel(const int* in, int* out) {
  __shared__ alignas(16) Mailbox box;
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  const unsigned bar = (unsigned)__cvta_generic_to_shared(&box.bar);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(bar) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(bar) : "memory");
  }
  asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" ::: "memory");
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.s32 [%0], %1, [%2];"  // <-- here
               ::"r"(map_to(box.letter + threadIdx.x, rank ^ 1)), "r"(in[32 * rank + threadIdx.x]), "r"(map_to(&box.bar, rank)) : "memory");  // <-- here
  asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0; @!p bra W; }" ::"r"(bar) : "memory");
  out[32 * rank + threadIdx.x] = box.letter[31 - threadIdx.x];  // <-- here
  asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" ::: "memory");
}
