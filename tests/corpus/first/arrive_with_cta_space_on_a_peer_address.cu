// wrong: cluster, fault, out-of-bounds, barrier-use, misaligned, deadlock
// The release signal to the peer maps the barrier's address with mapa, but arrives by the .shared::cta form. The window of this form covers only the executing CTA (PTX ISA, mbarrier.arrive: a remote barrier needs .shared::cluster and no return value).
// launch: {"grid": [1], "block": [32], "cluster": [2], "shmem_size": 0, "arguments": [{"zeros": [2], "dtype": "int32"}]}
__device__ unsigned remote(unsigned a, unsigned cta) {
  unsigned r;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(cta));
  return r;
}

extern "C" __global__ void kernel(int* out) {
  __shared__ unsigned long long ready;
  const unsigned bar = (unsigned)__cvta_generic_to_shared(&ready);
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(bar) : "memory");
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(remote(bar, rank ^ 1)) : "memory");  // <-- here
    asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0; @!p bra L; }" ::"r"(bar) : "memory");  // <-- here
    out[rank] = 1;
  }
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");  // <-- here
}
