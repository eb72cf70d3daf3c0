// right
// Between the arrive and the wait at the cluster barrier, a CTA uses its own shared memory. It reads words of the peer only after the first wait, and the arrive before the exit follows the last remote read (PTX ISA, barrier.cluster: arrive is .release, wait is .acquire by default).
// launch: {"grid": [2], "block": [64], "cluster": [2], "shmem_size": 0, "arguments": [{"arange": [4, 64], "dtype": "int32"}, {"zeros": [4, 64], "dtype": "int32"}]}
// result: argument 1 equals a0[:, ::-1] * 2 + a0.reshape(2, 2, 64)[:, ::-1].reshape(4, 64)
namespace cg_like {
__device__ void barrier_arrive() { asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"); }
__device__ void barrier_wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }
}  // namespace cg_like

extern "C" __global__ void kernel(const int* in, int* out) {
  __shared__ int shared_row[64];
  __shared__ int own_row[64];
  unsigned rank, remote;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  const int t = threadIdx.x, row = blockIdx.x * 64;
  shared_row[t] = in[row + t];
  cg_like::barrier_arrive();
  own_row[t] = in[row + t] * 2;
  __syncthreads();
  int v = own_row[63 - t];
  cg_like::barrier_wait();
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"((unsigned)__cvta_generic_to_shared(shared_row + t)), "r"(rank ^ 1));
  int peer;
  asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(peer) : "r"(remote) : "memory");
  v += peer;
  cg_like::barrier_arrive();
  out[row + t] = v;
  cg_like::barrier_wait();
}
