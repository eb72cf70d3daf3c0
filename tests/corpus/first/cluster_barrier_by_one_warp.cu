// wrong: deadlock, cluster, barrier-divergence
// Only warp 0 of each CTA arrives at the cluster barrier and waits (PTX ISA, barrier.cluster: it completes when all non-exited threads of the cluster have arrived).
// launch: {"grid": [1], "block": [64], "cluster": [2], "shmem_size": 0, "arguments": [{"arange": [2], "dtype": "int32"}, {"zeros": [2, 64], "dtype": "int32"}]}
extern "C" __global__ void kernel(const int* x, int* y) {
  __shared__ int mine;
  __shared__ int theirs;
  unsigned rank, peer_addr;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) mine = x[rank];
  if (threadIdx.x < 32) {
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");  // <-- here
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");    // <-- here
    if (threadIdx.x == 0) {
      asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer_addr) : "r"((unsigned)__cvta_generic_to_shared(&mine)), "r"(rank ^ 1));
      asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(theirs) : "r"(peer_addr) : "memory");
    }
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");  // <-- here
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");    // <-- here
  }
  __syncthreads();  // <-- here
  y[64 * rank + threadIdx.x] = theirs;
}
