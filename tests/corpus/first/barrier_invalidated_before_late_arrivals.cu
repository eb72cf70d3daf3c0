// wrong: barrier-use, race, deadlock
// The producer invalidates the empty barrier after its last refill. The final arrivals of the consumers may still be pending (PTX ISA, mbarrier.inval: every other operation on the object must come before; afterwards only init is allowed).
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [2, 32], "dtype": "int32"}, {"zeros": [2, 32], "dtype": "int32"}]}
__device__ unsigned smem_u32(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
#define WAIT(bar, parity) \
  asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @!done bra again; }" ::"r"(smem_u32(&bar)), "r"(parity) : "memory")
#define ARRIVE(bar) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(smem_u32(&bar)) : "memory")
#define INIT(bar, n) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem_u32(&bar)), "r"(n) : "memory")

extern "C" __global__ void kernel(const int* src, int* dst) {
  __shared__ int slot[32];
  __shared__ unsigned long long full, empty;
  if (threadIdx.x == 0) { INIT(full, 32); INIT(empty, 32); }
  __syncthreads();
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int i = 0; i < 2; ++i) {
      if (i) WAIT(empty, 0);
      slot[lane] = src[32 * i + lane];
      ARRIVE(full);
    }
    __syncwarp();
    if (lane == 0) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(smem_u32(&empty)) : "memory");  // <-- here
  } else {
    for (int i = 0; i < 2; ++i) {
      WAIT(full, i);
      dst[32 * i + lane] = slot[lane];
      ARRIVE(empty);  // <-- here
    }
  }
}
