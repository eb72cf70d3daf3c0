// wrong: transaction-count, race
// A and B use one full barrier, but the producer expects only the bytes of A. The phase completes while one of the copies is still pending, or the next phase receives unexpected bytes (PTX ISA, mbarrier expect-tx / complete-tx).
// launch: {"grid": [1], "block": [160], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [256], "dtype": "float32"}, {"arange": [256], "dtype": "float32"}, {"zeros": [128], "dtype": "float32"}]}
// in DeepGEMM's manner: a warp that loads, warps that compute
struct ClusterTransactionBarrier {
  unsigned long long b;
  __device__ unsigned a() const { return (unsigned)__cvta_generic_to_shared(&b); }
  __device__ void init(int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(a()), "r"(n)); }
  __device__ void arrive_and_expect_tx(unsigned bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(a()), "r"(bytes) : "memory"); }
  __device__ void arrive() { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(a()) : "memory"); }
  __device__ void wait(unsigned phase) const {
    asm volatile("{ .reg .pred P1; W: mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1; @P1 bra D; bra W; D: }" ::"r"(a()), "r"(phase) : "memory");
  }
};
__device__ void tma_copy(float* dst, const float* src, unsigned bytes, ClusterTransactionBarrier& bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"((unsigned)__cvta_generic_to_shared(dst)), "l"(src), "r"(bytes), "r"(bar.a()) : "memory");
}

extern "C" __global__ void kernel(const float* gmem_a, const float* gmem_b, float* gmem_d) {
  constexpr unsigned SMEM_A_SIZE_PER_STAGE = 128 * sizeof(float), SMEM_B_SIZE_PER_STAGE = 128 * sizeof(float);
  __shared__ alignas(1024) float smem_a[128];
  __shared__ alignas(1024) float smem_b[128];
  __shared__ ClusterTransactionBarrier full_barrier, empty_barrier;
  if (threadIdx.x == 128) {
    full_barrier.init(1);
    empty_barrier.init(128);
    asm volatile("fence.proxy.async;" ::: "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x >= 128) {
    if (threadIdx.x == 128)
      for (int k_iter = 0; k_iter < 2; ++k_iter) {
        empty_barrier.wait((k_iter & 1) ^ 1);
        tma_copy(smem_a, gmem_a + 128 * k_iter, SMEM_A_SIZE_PER_STAGE, full_barrier);  // <-- here
        tma_copy(smem_b, gmem_b + 128 * k_iter, SMEM_B_SIZE_PER_STAGE, full_barrier);  // <-- here
        full_barrier.arrive_and_expect_tx(SMEM_A_SIZE_PER_STAGE);  // <-- here
      }
  } else {
    float d = 0;
    for (int k_iter = 0; k_iter < 2; ++k_iter) {
      full_barrier.wait(k_iter & 1);  // <-- here
      d += smem_a[threadIdx.x] * smem_b[threadIdx.x];  // <-- here
      empty_barrier.arrive();
    }
    gmem_d[threadIdx.x] = d;
  }
}
