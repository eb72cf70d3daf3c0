// right
// An mbarrier for 128 threads completes further phases while one warp after another leaves the kernel. arrive_drop counts for the current phase and lowers the count of later phases (PTX ISA, mbarrier.arrive_drop; CUDA guide, barrier::arrive_and_drop).
// launch: {"grid": [1], "block": [128], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [4, 32], "dtype": "int32"}, {"zeros": [4, 32], "dtype": "int32"}]}
// result: argument 1 equals np.cumsum(a0, axis=0, dtype=np.int32)
class BlockBarrier {  // This class resembles cuda::barrier<cuda::thread_scope_block>.
  unsigned long long word;
  __device__ unsigned address() const { return (unsigned)__cvta_generic_to_shared(&word); }

 public:
  __device__ void init(unsigned count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(count) : "memory"); }
  __device__ void arrive_and_wait() {
    unsigned long long token;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(token) : "r"(address()) : "memory");
    asm volatile("{ .reg .pred p; T: mbarrier.try_wait.shared::cta.b64 p, [%0], %1; @!p bra T; }" ::"r"(address()), "l"(token) : "memory");
  }
  __device__ unsigned long long arrive_and_drop() {
    unsigned long long token;
    asm volatile("mbarrier.arrive_drop.shared::cta.b64 %0, [%1];" : "=l"(token) : "r"(address()) : "memory");
    return token;
  }
};

extern "C" __global__ void kernel(const int* x, int* prefix) {
  __shared__ int row[2][32];
  __shared__ BlockBarrier barrier;
  if (threadIdx.x == 0) barrier.init(blockDim.x);
  __syncthreads();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int sum = 0;
  for (int step = 0; step < warp; ++step) {
    barrier.arrive_and_wait();
    sum += row[step % 2][lane];
  }
  const int own = x[warp * 32 + lane];
  if (threadIdx.x < blockDim.x - 32) {
    row[warp % 2][lane] = own;
    barrier.arrive_and_drop();
  }
  prefix[warp * 32 + lane] = sum + own;
}
