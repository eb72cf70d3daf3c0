// wrong: cluster, early-exit
// After the cluster barrier, each CTA reads the shared memory of its right neighbor, and ends. No second cluster barrier keeps the neighbor resident (CUDA guide, distributed shared memory: the CTA must exist until all accesses to it are done).
// launch: {"grid": [1], "block": [32], "cluster": [4], "shmem_size": 0, "arguments": [{"arange": [128], "dtype": "int32"}, {"zeros": [128], "dtype": "int32"}]}
__device__ __forceinline__ int load_remote(const int* p, unsigned rank) {
  unsigned remote;
  int v;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"((unsigned)__cvta_generic_to_shared(p)), "r"(rank));
  asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(v) : "r"(remote) : "memory");  // <-- here
  return v;
}

extern "C" __global__ void kernel(const int* x, int* y) {
  __shared__ int halo[32];
  unsigned rank, size;
  asm("mov.u32 %0, %%cluster_ctarank;\n\tmov.u32 %1, %%cluster_nctarank;" : "=r"(rank), "=r"(size));
  const int i = 32 * rank + threadIdx.x;
  halo[threadIdx.x] = x[i];
  asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
  y[i] = load_remote(&halo[31 - threadIdx.x], (rank + 1) % size);  // <-- here
}  // <-- here
