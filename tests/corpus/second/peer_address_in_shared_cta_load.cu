// wrong: cluster, out-of-bounds, fault
// The halo exchange loads a word of the neighbor by ld.shared::cta with an address from mapa. The .shared::cta window contains only memory of the executing CTA, and a peer requires .shared::cluster (PTX ISA, Shared state space; mapa).
// launch: {"grid": [1], "block": [64], "cluster": [2], "shmem_size": 0, "arguments": [{"arange": [2, 64], "dtype": "int32"}, {"zeros": [2, 64], "dtype": "int32"}]}
__device__ inline void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
struct Strip {
  int cells[64];
  __device__ int own(int i) const { return cells[i]; }
  __device__ int of_neighbor(int i, unsigned rank) const {
    unsigned remote;
    int v;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"((unsigned)__cvta_generic_to_shared(cells + i)), "r"(rank));
    asm volatile("ld.shared::cta.s32 %0, [%1];" : "=r"(v) : "r"(remote) : "memory");  // <-- here
    return v;
  }
};

extern "C" __global__ void kernel(const int* in, int* out) {
  __shared__ Strip strip;
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  const int i = threadIdx.x;
  strip.cells[i] = in[64 * rank + i];
  cluster_sync();
  const int right = i < 63 ? strip.own(i + 1) : strip.of_neighbor(0, rank ^ 1);  // <-- here
  out[64 * rank + i] = right - strip.own(i);
  cluster_sync();
}
