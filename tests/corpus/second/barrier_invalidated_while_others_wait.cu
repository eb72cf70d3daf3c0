// wrong: barrier-use, race
// Thread 0 invalidates the mbarrier as soon as its own wait returns. Warp 1 may still test the mbarrier (PTX ISA, mbarrier.inval: any other operation on the object afterwards is undefined, so all must have finished).
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [64], "dtype": "float32"}, {"zeros": [64], "dtype": "float32"}]}
struct ScopedBarrier {  // The CTA's first thread invalidates the barrier at the end of the scope.
  unsigned long long* b;
  bool owner;
  __device__ ScopedBarrier(unsigned long long* storage, unsigned n) : b(storage), owner(threadIdx.x == 0) {
    if (owner) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(address()), "r"(n) : "memory");
    __syncthreads();
  }
  __device__ ~ScopedBarrier() {
    if (owner) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(address()) : "memory");  // <-- here
  }
  __device__ unsigned address() const { return (unsigned)__cvta_generic_to_shared(b); }
  __device__ void wait(unsigned parity) const {
    unsigned done = 0;
    while (!done)
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(address()), "r"(parity) : "memory");  // <-- here
  }
};

extern "C" __global__ void kernel(const float* x, float* y) {
  __shared__ alignas(16) float v[64];
  __shared__ unsigned long long storage;
  {
    ScopedBarrier bar(&storage, 1);
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(bar.address()) : "memory");
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"((unsigned)__cvta_generic_to_shared(v)), "l"(x), "r"(bar.address()) : "memory");
    }
    bar.wait(0);  // <-- here
  }  // <-- here
  y[threadIdx.x] = v[63 - threadIdx.x];
}
