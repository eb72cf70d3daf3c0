// wrong: race, deadlock
// With two stages, the consumer uses `k & 1` (the stage) as the parity instead of `(k / 2) & 1`. The wait for stage 1 has parity 1 before its first phase completes, and returns at once (PTX ISA, mbarrier.test_wait.parity).
// launch: {"grid": [1], "block": [128], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [2, 128], "dtype": "int32"}, {"zeros": [128], "dtype": "int32"}]}
#define MBAR_INIT(b, n) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(n) : "memory")
#define MBAR_EXPECT(b, n) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(n) : "memory")
#define BULK_G2S(d, s, n, b) \
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" \
               ::"r"(d), "l"(s), "r"(n), "r"(b) : "memory")
#define MBAR_WAIT(b, ph)                                                                                \
  do {                                                                                                  \
    unsigned ready_;                                                                                    \
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" \
                 : "=r"(ready_) : "r"(b), "r"(ph) : "memory");                                          \
    if (ready_) break;                                                                                  \
  } while (true)

extern "C" __global__ __launch_bounds__(128) void kernel(const int* __restrict__ src, int* __restrict__ dst) {
  __shared__ __align__(128) int stage[2][128];
  __shared__ unsigned long long mb[2];
  unsigned bar0 = (unsigned)__cvta_generic_to_shared(&mb[0]);
  unsigned buf0 = (unsigned)__cvta_generic_to_shared(&stage[0][0]);
  if (threadIdx.x == 0) {
    MBAR_INIT(bar0, 1);
    MBAR_INIT(bar0 + 8, 1);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int k = 0; k < 2; ++k) {
      MBAR_EXPECT(bar0 + 8 * k, 512);
      BULK_G2S(buf0 + 512 * k, src + 128 * k, 512, bar0 + 8 * k);  // <-- here
    }
  }
  int acc = 0;
  for (int k = 0; k < 2; ++k) {
    MBAR_WAIT(bar0 + 8 * (k % 2), k & 1);  // <-- here
    acc += stage[k % 2][threadIdx.x];  // <-- here
  }
  dst[threadIdx.x] = acc;
}
