// wrong: race
// The consumer arrives at the empty barrier directly after the full wait, and reads the slot afterwards. The release of the arrive does not cover later reads, so the refill may overwrite the slot (PTX ISA, mbarrier.arrive: release orders prior accesses only).
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [5, 32], "dtype": "int32"}, {"zeros": [5, 32], "dtype": "int32"}]}
using barrier_t = unsigned long long;
template <class F> __device__ void spin(F&& f) { while (!f()) {} }
__device__ unsigned smem(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ bool try_wait(barrier_t& b, unsigned parity) {
  int r;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2, 1000; selp.b32 %0, 1, 0, p; }" : "=r"(r) : "r"(smem(&b)), "r"(parity) : "memory");
  return r;
}

extern "C" __global__ void kernel(const int* in, int* out) {
  __shared__ alignas(16) int slot[32];
  __shared__ barrier_t full, empty;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(smem(&full)));
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(smem(&empty)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const unsigned lane = threadIdx.x & 31;
  if (threadIdx.x / 32 == 1) {
    for (int i = 0; i < 5; ++i) {
      if (lane != 0) continue;
      spin([&] { return try_wait(empty, (i & 1) ^ 1); });
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(smem(&full)) : "memory");
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];" ::"r"(smem(slot)), "l"(in + 32 * i), "r"(smem(&full)) : "memory");  // <-- here
    }
  } else {
    for (int i = 0; i < 5; ++i) {
      spin([&] { return try_wait(full, i & 1); });
      asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(smem(&empty)) : "memory");  // <-- here
      out[32 * i + lane] = slot[lane];  // <-- here
    }
  }
}
