// wrong: barrier-use, race
// The kernel executes barrier.cluster.arrive.relaxed without fence.mbarrier_init. The relaxed arrive does not release, so the remote arrive of the peer is not ordered after mbarrier.init (PTX ISA, barrier.cluster: .relaxed; fence.mbarrier_init).
// launch: {"grid": [1], "block": [32], "cluster": [2], "shmem_size": 0, "arguments": [{"zeros": [64], "dtype": "int32"}]}
namespace cg_like {
struct cluster_group {
  static __device__ unsigned block_rank() { unsigned r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
  static __device__ void sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  }
  static __device__ void sync_relaxed() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
  }
  static __device__ unsigned map_shared_rank(const void* p, unsigned rank) {
    unsigned a;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(a) : "r"((unsigned)__cvta_generic_to_shared(p)), "r"(rank));
    return a;
  }
};
__device__ cluster_group this_cluster() { return {}; }
}  // namespace cg_like

extern "C" __global__ void kernel(int* out) {
  __shared__ unsigned long long handshake;
  auto cluster = cg_like::this_cluster();
  const unsigned own = (unsigned)__cvta_generic_to_shared(&handshake);
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(own) : "memory");  // <-- here
  __syncwarp();
  cluster.sync_relaxed();  // <-- here
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"  // <-- here
               ::"r"(cluster.map_shared_rank(&handshake, cluster.block_rank() ^ 1)) : "memory");  // <-- here
  asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0; @!p bra W; }" ::"r"(own) : "memory");  // <-- here
  out[32 * cluster.block_rank() + threadIdx.x] = threadIdx.x;
  cluster.sync();
}
