// wrong: barrier-use, race
// CTA 0 multicasts into both CTAs and signals the mbarriers of both CTAs after only its own __syncthreads(). The mbarrier of the peer may not be initialized (PTX ISA, barrier.cluster; CUDA guide: cluster sync after mbarrier init).
// launch: {"grid": [1], "block": [32], "cluster": [2], "shmem_size": 0, "arguments": [{"arange": [64], "dtype": "float32"}, {"zeros": [2, 64], "dtype": "float32"}]}
struct __align__(16) Smem { float tile[64]; unsigned long long mbar; };
__device__ __forceinline__ unsigned smem_u32(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ unsigned cluster_ctarank() { unsigned r; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }

extern "C" __global__ void kernel(const float* g, float* out) {
  __shared__ Smem s;
  const unsigned rank = cluster_ctarank();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(smem_u32(&s.mbar)) : "memory");  // <-- here
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(smem_u32(&s.mbar)) : "memory");
  }
  __syncthreads();  // <-- here
  if (rank == 0 && threadIdx.x == 0) {
    unsigned short mask = 3;
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 256, [%2], %3;"  // <-- here
                 ::"r"(smem_u32(s.tile)), "l"(g), "r"(smem_u32(&s.mbar)), "h"(mask) : "memory");  // <-- here
  }
  asm volatile("{ .reg .pred p; R: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra R; }" ::"r"(smem_u32(&s.mbar)) : "memory");
  for (int i = threadIdx.x; i < 64; i += 32) out[64 * rank + i] = s.tile[i];
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
