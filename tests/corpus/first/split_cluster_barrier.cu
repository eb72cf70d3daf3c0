// right
// Independent work on global memory is between barrier.cluster.arrive and .wait. The second arrive follows the last remote read, and its wait at the end keeps the peer resident.
// launch: {"grid": [1], "block": [64], "cluster": [2], "shmem_size": 0, "arguments": [{"arange": [2, 64], "dtype": "float32"}, {"zeros": [2, 64], "dtype": "float32"}]}
// result: argument 1 equals a0[::-1] + 2 * a0
extern "C" __global__ void kernel(const float* x, float* y) {
  __shared__ float mine[64];
  unsigned rank, remote;
  float theirs;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  const int i = 64 * rank + threadIdx.x;
  mine[threadIdx.x] = x[i];
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  const float twice = 2.f * x[i];
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"((unsigned)__cvta_generic_to_shared(&mine[threadIdx.x])), "r"(rank ^ 1));
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(theirs) : "r"(remote) : "memory");
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  y[i] = twice + theirs;
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
