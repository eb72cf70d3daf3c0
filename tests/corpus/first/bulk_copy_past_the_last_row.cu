// wrong: out-of-bounds
// Each block copies 64 floats by a non-tensor bulk copy, but the array ends 16 floats into the last block's part. Only tensor copies clip at the end (PTX ISA, cp.async.bulk: all bytes of the source must be accessible).
// launch: {"grid": [2], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [80], "dtype": "float32"}, {"zeros": [80], "dtype": "float32"}, {"scalar": 80, "dtype": "int32"}]}
__device__ __forceinline__ unsigned smem_addr(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

extern "C" __global__ void kernel(const float* x, float* y, int n) {
  __shared__ alignas(16) float part[64];
  __shared__ alignas(8) unsigned long long full;
  const int start = 64 * blockIdx.x;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(smem_addr(&full)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem_addr(&full)), "n"(sizeof(part)) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"  // <-- here
                 ::"r"(smem_addr(part)), "l"(x + start), "n"(sizeof(part)), "r"(smem_addr(&full)) : "memory");  // <-- here
  }
  __syncthreads();
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra L; }" ::"r"(smem_addr(&full)) : "memory");
  for (int i = threadIdx.x; i < 64 && start + i < n; i += 32) y[start + i] = part[i];
}
