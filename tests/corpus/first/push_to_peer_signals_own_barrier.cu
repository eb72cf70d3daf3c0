// wrong: cluster, barrier-use, transaction-count, deadlock, race
// A bulk copy from shared memory to the shared memory of a peer signals the mbarrier of the sender (PTX ISA, cp.async.bulk: for shared::cluster destinations the mbarrier must lie in the same CTA's shared memory as the destination).
// launch: {"grid": [1], "block": [32], "cluster": [2], "shmem_size": 0, "arguments": [{"arange": [2, 32], "dtype": "float32"}, {"zeros": [2, 32], "dtype": "float32"}]}
struct Box { alignas(16) float send[32]; alignas(16) float recv[32]; unsigned long long full; };
__device__ unsigned sa(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void all_ctas() { asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory"); }

extern "C" __global__ void kernel(const float* x, float* y) {
  __shared__ Box box;
  unsigned rank, there;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  box.send[threadIdx.x] = x[32 * rank + threadIdx.x];
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(sa(&box.full)) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(sa(&box.full)) : "memory");
  }
  asm volatile("fence.proxy.async;" ::: "memory");
  all_ctas();
  if (threadIdx.x == 0) {
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(sa(box.recv)), "r"(rank ^ 1u));
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"  // <-- here
                 ::"r"(there), "r"(sa(box.send)), "r"(sa(&box.full)) : "memory");  // <-- here
  }
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra L; }" ::"r"(sa(&box.full)) : "memory");  // <-- here
  y[32 * rank + threadIdx.x] = box.recv[threadIdx.x];  // <-- here
  all_ctas();
}
