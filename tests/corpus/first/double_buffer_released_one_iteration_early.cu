// wrong: race
// In iteration k, the consumer releases the slot of iteration k + 1 instead of slot k. The producer may refill a slot before the consumer reads it (PTX ISA, Causality order: the reads come after the release).
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [6, 64], "dtype": "float32"}, {"zeros": [6, 64], "dtype": "float32"}]}
using bar_t = unsigned long long;
struct alignas(128) Storage { float slot[2][64]; bar_t full[2], empty[2]; };
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void wait(bar_t& b, int parity) { asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra L; }" ::"r"(at(&b)), "r"(parity) : "memory"); }

extern "C" __global__ void kernel(const float* x, float* y) {
  __shared__ Storage s;
  if (threadIdx.x == 0)
    for (int i = 0; i < 2; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&s.full[i])) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(at(&s.empty[i])) : "memory");
    }
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 32) {
    for (int k = 0; k < 6; ++k) {
      wait(s.empty[k % 2], (k / 2 & 1) ^ 1);
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(at(&s.full[k % 2])) : "memory");
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"  // <-- here
                   ::"r"(at(s.slot[k % 2])), "l"(x + 64 * k), "r"(at(&s.full[k % 2])) : "memory");  // <-- here
    }
  } else if (threadIdx.x < 32) {
    for (int k = 0; k < 6; ++k) {
      wait(s.full[k % 2], k / 2 & 1);
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(&s.empty[(k + 1) % 2])) : "memory");  // <-- here
      y[64 * k + threadIdx.x] = s.slot[k % 2][threadIdx.x];  // <-- here
      y[64 * k + threadIdx.x + 32] = s.slot[k % 2][threadIdx.x + 32];  // <-- here
    }
  }
}
