// wrong: race
// Thread 0 issues and commits the bulk store, and thread 32 waits for it. Bulk groups belong to the committing thread, so the wait returns at once (PTX ISA, cp.async.bulk.commit_group: per-thread bulk async-groups).
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [3, 64], "dtype": "int32"}]}
#define warp_id (threadIdx.x / 32)
#define lane_id (threadIdx.x % 32)
namespace ptx {
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async;" ::: "memory"); }
__device__ __forceinline__ void cp_async_bulk(void* g, const void* s, unsigned n) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(g), "r"((unsigned)__cvta_generic_to_shared(s)), "r"(n) : "memory");
}
__device__ __forceinline__ void cp_async_bulk_commit_group() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void cp_async_bulk_wait_group_read() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory"); }
}  // namespace ptx

extern "C" __global__ void kernel(int* out) {
  __shared__ alignas(128) int smem_buffer[64];
  for (int round = 0; round < 3; ++round) {
    smem_buffer[threadIdx.x] = 64 * round + threadIdx.x;  // <-- here
    ptx::fence_proxy_async();
    __syncthreads();
    if (warp_id == 0 && lane_id == 0) {
      ptx::cp_async_bulk(&out[64 * round], smem_buffer, sizeof(smem_buffer));  // <-- here
      ptx::cp_async_bulk_commit_group();
    }
    if (warp_id == 1 && lane_id == 0) ptx::cp_async_bulk_wait_group_read<0>();  // <-- here
    __syncthreads();
  }
  if (threadIdx.x == 0) ptx::cp_async_bulk_wait_group_read<0>();
}
