// right
// The kernel of a programmatic dependent launch lets its dependents start at once, initializes its barrier before griddepcontrol.wait, and accesses global memory only after that wait. The early trigger is legal, because the dependents also wait.
// launch: {"grid": [2], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [2, 32], "dtype": "float32"}, {"zeros": [2, 32], "dtype": "float32"}]}
// result: argument 1 equals a0[:, ::-1] + 1
extern "C" __global__ void kernel(const float* x, float* y) {
  __shared__ alignas(16) float tile[32];
  __shared__ unsigned long long mbar;
  const unsigned bar = (unsigned)__cvta_generic_to_shared(&mbar);
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(bar) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(bar) : "memory");
  }
  asm volatile("griddepcontrol.wait;" ::: "memory");
  if (threadIdx.x == 0)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"
                 ::"r"((unsigned)__cvta_generic_to_shared(tile)), "l"(x + 32 * blockIdx.x), "r"(bar) : "memory");
  __syncwarp();
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra L; }" ::"r"(bar) : "memory");
  y[32 * blockIdx.x + threadIdx.x] = tile[31 - threadIdx.x] + 1.f;
}
