// wrong: race, barrier-use, deadlock
// The loop waits with the token of the first arrival, not with the token of its own iteration. From the second iteration on, that phase is complete, so the wait returns at once (PTX ISA, mbarrier.test_wait: state of the phase to wait for).
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [2, 64], "dtype": "int32"}]}
// cuda::barrier<thread_scope_block>, spelled out
struct barrier {
  using arrival_token = unsigned long long;
  unsigned long long state;
  __device__ unsigned a() const { return (unsigned)__cvta_generic_to_shared(&state); }
  __device__ arrival_token arrive() {
    arrival_token t;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(t) : "r"(a()) : "memory");
    return t;
  }
  __device__ void wait(arrival_token t) const {
    unsigned ok = 0;
    while (!ok) asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(ok) : "r"(a()), "l"(t) : "memory");
  }
};
__device__ void init(barrier* b, unsigned n) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(b->a()), "r"(n) : "memory"); }

extern "C" __global__ void kernel(int* out) {
  __shared__ barrier bar;
  __shared__ int box[2][64];
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  barrier::arrival_token token{};
  for (int step = 0; step < 2; ++step) {
    box[step][threadIdx.x] = step * 64 + threadIdx.x;  // <-- here
    if (step == 0) token = bar.arrive(); else (void)bar.arrive();  // <-- here
    bar.wait(token);  // <-- here
    out[step * 64 + threadIdx.x] = box[step][63 - threadIdx.x];  // <-- here
  }
}
