// wrong: deadlock, barrier-use
// The producer's first wait for the empty barrier has parity 0, like the consumers' first wait for the full barrier. No thread has released a slot, so phase 0 never completes (PTX ISA, mbarrier.try_wait.parity; CUTLASS starts the producer's phase at 1).
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [4, 32], "dtype": "float32"}, {"zeros": [4, 32], "dtype": "float32"}]}
struct PipelineState {
  int index = 0;
  unsigned phase = 0;
  __device__ void advance() { if (++index == 2) index = 0, phase ^= 1; }
};
struct Bar {
  unsigned long long b;
  __device__ unsigned a() const { return (unsigned)__cvta_generic_to_shared(&b); }
  __device__ void init(int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(a()), "r"(n) : "memory"); }  // <-- here
  __device__ void arrive() { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(a()) : "memory"); }
  __device__ void wait(unsigned ph) { asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra L; }" ::"r"(a()), "r"(ph) : "memory"); }  // <-- here
};

extern "C" __global__ void kernel(const float* in, float* out) {
  __shared__ Bar full[2], empty[2];
  __shared__ float slot[2][32];
  if (threadIdx.x < 2) full[threadIdx.x].init(32), empty[threadIdx.x].init(32);
  __syncthreads();
  const int lane = threadIdx.x % 32;
  PipelineState st;
  for (int k = 0; k < 4; ++k, st.advance()) {
    if (threadIdx.x >= 32) {
      empty[st.index].wait(st.phase);  // <-- here
      slot[st.index][lane] = in[32 * k + lane];
      full[st.index].arrive();
    } else {
      full[st.index].wait(st.phase);  // <-- here
      out[32 * k + lane] = slot[st.index][31 - lane];
      empty[st.index].arrive();
    }
  }
}
