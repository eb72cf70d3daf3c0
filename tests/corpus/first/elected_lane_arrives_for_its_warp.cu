// right
// Only lane 0 of each consumer warp releases the slot, although all lanes have read it. __syncwarp orders the reads of the other lanes before this arrival (CUDA guide, __syncwarp: memory ordering among participating threads).
// launch: {"grid": [1], "block": [96], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [5, 64], "dtype": "int32"}, {"zeros": [5, 64], "dtype": "int32"}]}
// result: argument 1 equals a0 + 7
struct Smem { alignas(128) int slot[64]; unsigned long long full, empty; };
__device__ unsigned p(const void* x) { return (unsigned)__cvta_generic_to_shared(x); }
__device__ void wait(unsigned bar, unsigned parity) {
  asm volatile("{\n\t.reg .pred ok;\n\tagain: mbarrier.try_wait.parity.shared::cta.b64 ok, [%0], %1;\n\t@!ok bra again;\n\t}" ::"r"(bar), "r"(parity) : "memory");
}

extern "C" __global__ void kernel(const int* x, int* y) {
  __shared__ Smem s;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(p(&s.full)) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(p(&s.empty)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x >= 64) {
    if (threadIdx.x == 64)
      for (int i = 0; i < 5; ++i) {
        wait(p(&s.empty), (i & 1) ^ 1);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(p(&s.full)) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(p(s.slot)), "l"(x + 64 * i), "r"(p(&s.full)) : "memory");
      }
    return;  // The last copy is still pending, and the consumers wait for it.
  }
  for (int i = 0; i < 5; ++i) {
    wait(p(&s.full), i & 1);
    const int v = s.slot[threadIdx.x];
    __syncwarp();
    if (threadIdx.x % 32 == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(p(&s.empty)) : "memory");
    y[64 * i + threadIdx.x] = v + 7;
  }
}
