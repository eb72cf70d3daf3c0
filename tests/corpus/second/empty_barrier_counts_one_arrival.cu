// wrong: race, barrier-use, deadlock
// The empty barrier is initialized for one arrival per stage, but each of 64 consumer threads arrives. The phase completes after the first arrival, and further arrivals count for later phases (PTX ISA, mbarrier.init count; mbarrier.arrive).
// launch: {"grid": [1], "block": [96], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [4, 64], "dtype": "float32"}, {"zeros": [64], "dtype": "float32"}]}
namespace cutlass { namespace arch {
struct ClusterBarrier {
  unsigned long long barrier_;
  __device__ void init(unsigned n) const { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"((unsigned)__cvta_generic_to_shared(this)), "r"(n)); }
  __device__ void wait(unsigned phase) const {
    asm volatile("{ .reg .pred P1; LAB: mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1; @P1 bra OK; bra LAB; OK: }" ::"r"((unsigned)__cvta_generic_to_shared(this)), "r"(phase) : "memory");
  }
  __device__ void arrive() const { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"((unsigned)__cvta_generic_to_shared(this)) : "memory"); }
  __device__ void arrive_and_expect_tx(unsigned n) const { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"((unsigned)__cvta_generic_to_shared(this)), "r"(n) : "memory"); }
};
}}  // namespace cutlass::arch
using cutlass::arch::ClusterBarrier;

extern "C" __global__ void kernel(const float* a, float* o) {
  __shared__ alignas(16) float smem[64];
  __shared__ ClusterBarrier full, empty;
  if (threadIdx.x == 0) {
    full.init(1);
    empty.init(1);  // <-- here
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    if (threadIdx.x == 0)
      for (int k = 0; k < 4; ++k) {
        empty.wait((k + 1) & 1);  // <-- here
        full.arrive_and_expect_tx(256);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"  // <-- here
                     ::"r"((unsigned)__cvta_generic_to_shared(smem)), "l"(a + 64 * k), "r"((unsigned)__cvta_generic_to_shared(&full)) : "memory");  // <-- here
      }
  } else {
    float sum = 0;
    for (int k = 0; k < 4; ++k) {
      full.wait(k & 1);
      sum += smem[threadIdx.x - 32];  // <-- here
      empty.arrive();  // <-- here
    }
    o[threadIdx.x - 32] = sum;
  }
}
