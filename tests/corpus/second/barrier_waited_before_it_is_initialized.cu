// wrong: barrier-use, race
// Thread 0 initializes the mbarrier, and the other warps do not wait for the initialization. They may test an uninitialized object (PTX ISA, mbarrier.init: operations on the object need prior initialization).
// launch: {"grid": [1], "block": [96], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [32], "dtype": "float32"}, {"zeros": [96], "dtype": "float32"}]}
static __device__ unsigned cvta(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

extern "C" __global__ void kernel(const float* x, float* y) {
  __shared__ alignas(16) float lut[32];
  __shared__ unsigned long long lut_ready;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(cvta(&lut_ready)) : "memory");  // <-- here
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");  // <-- here
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(cvta(&lut_ready)) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"
                 ::"r"(cvta(lut)), "l"(x), "r"(cvta(&lut_ready)) : "memory");
  }
  __syncwarp();  // The author assumed that the block has only one warp.
  int ready;
  do {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.s32 %0, 1, 0, p; }"  // <-- here
                 : "=r"(ready) : "r"(cvta(&lut_ready)) : "memory");  // <-- here
  } while (!ready);
  y[threadIdx.x] = lut[threadIdx.x * 7 % 32];
}
