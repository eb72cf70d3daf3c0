// right
// Each CTA sends 32 words by st.async and adds 32 more to one remote counter by red.async. The receiver expects the bytes of both (a red.async completes its operand's bytes), and reads only after a wait for its own barrier.
// launch: {"grid": [1], "block": [32], "cluster": [2], "shmem_size": 0, "arguments": [{"arange": [2, 32], "dtype": "uint32"}, {"zeros": [2, 33], "dtype": "uint32"}]}
// result: argument 1 equals np.c_[a0[::-1], a0.sum(1)[::-1]]
struct Inbox { unsigned word[32]; unsigned sum; unsigned long long full; };
__device__ unsigned local(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ unsigned remote(const void* p, unsigned rank) {
  unsigned r;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(local(p)), "r"(rank));
  return r;
}

extern "C" __global__ void kernel(const unsigned* x, unsigned* y) {
  __shared__ Inbox in;
  const int t = threadIdx.x;
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (t == 0) {
    in.sum = 0;
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(local(&in.full)) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(local(&in.full)) : "memory");
  }
  asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
  const unsigned v = x[32 * rank + t], peer = rank ^ 1, bar = remote(&in.full, peer);
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(remote(&in.word[t], peer)), "r"(v), "r"(bar) : "memory");
  asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" ::"r"(remote(&in.sum, peer)), "r"(v), "r"(bar) : "memory");
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0; @!p bra L; }" ::"r"(local(&in.full)) : "memory");
  y[33 * rank + t] = in.word[t];
  if (t == 0) y[33 * rank + 32] = in.sum;
}
