// right
// Lanes with equal keys elect a leader inside a divergent branch, and blocks add to common counters. The last block reads the counters by atomicAdd of zero, after a ticket between fences (CUDA guide, __match_any_sync, __activemask; threadFenceReduction sample; PTX ISA, Conflict: atomics with atomics are no data race).
// launch: {"grid": [4], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [4, 64], "dtype": "int32"}, {"zeros": [8], "dtype": "int32"}, {"zeros": [1], "dtype": "uint32"}, {"zeros": [8], "dtype": "int32"}]}
// result: argument 3 equals np.bincount(a0[a0 % 3 != 0] * 5 // 4 % 8, minlength=8).astype(np.int32)
__device__ void add_aggregated(int* counters, int key, unsigned active) {
  const unsigned peers = __match_any_sync(active, key);
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  if (lane == __ffs(peers) - 1u) atomicAdd(counters + key, __popc(peers));
}

extern "C" __global__ void kernel(const int* values, int* counters, unsigned* tickets, int* histogram) {
  __shared__ bool is_last;
  const int v = values[blockIdx.x * blockDim.x + threadIdx.x];
  const bool counted = v % 3 != 0;
  const unsigned active = __ballot_sync(0xffffffffu, counted);
  if (counted) add_aggregated(counters, v * 5 / 4 % 8, active);
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    is_last = atomicAdd(tickets, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!is_last) return;
  if (threadIdx.x < 8) histogram[threadIdx.x] = atomicAdd(counters + threadIdx.x, 0);
}
