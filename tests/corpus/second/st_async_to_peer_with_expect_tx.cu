// right
// The kernel has no fence and no cluster barrier between the remote write and the read. st.async completes its bytes on the mbarrier of the receiving CTA, which expects them and waits with acquire at cluster scope. No CTA exits before its words have arrived (PTX ISA, st.async; mbarrier.try_wait).
// launch: {"grid": [1], "block": [32], "cluster": [4], "shmem_size": 0, "arguments": [{"arange": [4, 32, 2], "dtype": "int32"}, {"zeros": [4, 32, 2], "dtype": "int32"}]}
// result: argument 1 equals np.roll(a0, 1, axis=0)[:, ::-1]
struct alignas(16) Inbox {
  int2 word[32];
  unsigned long long ready;
};
__device__ unsigned remote(const void* p, unsigned rank) {
  unsigned a;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(a) : "r"((unsigned)__cvta_generic_to_shared(p)), "r"(rank));
  return a;
}

extern "C" __global__ void kernel(const int2* in, int2* out) {
  __shared__ Inbox inbox;
  unsigned rank, ranks;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(ranks));
  const unsigned ready = (unsigned)__cvta_generic_to_shared(&inbox.ready), next = (rank + 1) % ranks;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(ready) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(ready), "n"(sizeof(inbox.word)) : "memory");
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  const int2 v = in[rank * 32 + threadIdx.x];
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.s32 [%0], {%1, %2}, [%3];"
               ::"r"(remote(&inbox.word[threadIdx.x], next)), "r"(v.x), "r"(v.y), "r"(remote(&inbox.ready, next)) : "memory");
  asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0; @!p bra W; }" ::"r"(ready) : "memory");
  out[rank * 32 + threadIdx.x] = inbox.word[31 - threadIdx.x];
}
