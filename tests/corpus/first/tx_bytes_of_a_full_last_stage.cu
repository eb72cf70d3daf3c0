// wrong: transaction-count, deadlock
// The last K step copies only one operand, because it reuses the other operand, but the producer still expects the bytes of both. The phase never completes (PTX ISA, mbarrier: a phase ends when pending arrivals and tx-count are both zero).
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [3, 32], "dtype": "float32"}, {"arange": [3, 32], "dtype": "float32"}, {"zeros": [32], "dtype": "float32"}]}
struct Stage { alignas(16) float a[32]; alignas(16) float b[32]; };
__device__ unsigned u(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void bulk(void* dst, const void* src, unsigned bytes, unsigned bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(u(dst)), "l"(src), "r"(bytes), "r"(bar) : "memory");
}

extern "C" __global__ void kernel(const float* a, const float* b, float* c) {
  __shared__ Stage st[3];
  __shared__ unsigned long long full[3];
  if (threadIdx.x == 0)
    for (int i = 0; i < 3; ++i) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(u(&full[i])) : "memory");  // <-- here
  __syncthreads();
  if (threadIdx.x == 32) {
    for (int i = 0; i < 3; ++i) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(u(&full[i])), "r"((unsigned)sizeof(Stage)) : "memory");  // <-- here
      bulk(st[i].a, a + 32 * i, 128, u(&full[i]));
      if (i < 2) bulk(st[i].b, b + 32 * i, 128, u(&full[i]));
    }
  } else if (threadIdx.x < 32) {
    float acc = 0;
    for (int i = 0; i < 3; ++i) {
      asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra L; }" ::"r"(u(&full[i])) : "memory");  // <-- here
      acc += st[i].a[threadIdx.x] * st[min(i, 1)].b[threadIdx.x];
    }
    c[threadIdx.x] = acc;
  }
}
