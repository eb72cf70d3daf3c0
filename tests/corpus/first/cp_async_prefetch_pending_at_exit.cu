// wrong: early-exit
// The loop prefetches one tile after the last tile, and the kernel ends without a wait for this copy. The copy may write shared memory of a block that has ended (CUDA guide and PTX ISA, cp.async: completion must be observed by wait_group or an mbarrier).
// launch: {"grid": [1], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [4, 32], "dtype": "int32"}, {"zeros": [3, 32], "dtype": "int32"}]}
struct Stage { alignas(16) int data[32]; };

template <int Pending>
__device__ void pipeline_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory"); }
__device__ void pipeline_load(Stage& s, const int* g) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((unsigned)__cvta_generic_to_shared(&s.data[threadIdx.x])), "l"(g + threadIdx.x) : "memory");  // <-- here
  asm volatile("cp.async.commit_group;" ::: "memory");  // <-- here
}

extern "C" __global__ void kernel(const int* in, int* out) {
  __shared__ Stage ring[2];
  pipeline_load(ring[0], in);
  for (int t = 0; t < 3; ++t) {
    pipeline_load(ring[(t + 1) % 2], in + 32 * (t + 1));  // <-- here
    pipeline_wait<1>();
    out[32 * t + threadIdx.x] = ring[t % 2].data[threadIdx.x] + 1;
  }
}  // <-- here
