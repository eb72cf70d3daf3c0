// right
// Blocks read and overwrite each other's rows with ordinary accesses between grid barriers of one atomicAdd and a volatile poll. The fences on both sides form a release and an acquire, and the CTA barriers extend the order to all threads (cooperative_groups, sync_grids; PTX ISA, Release and acquire patterns).
// launch: {"grid": [3], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [3, 32], "dtype": "int32"}, {"zeros": [1], "dtype": "uint32"}]}
// result: argument 0 equals 2 * a0 + np.roll(a0, -1, axis=0) + np.roll(a0, -2, axis=0)
namespace details {
__device__ inline bool bar_has_flipped(unsigned old_arrive, unsigned current_arrive) { return ((old_arrive ^ current_arrive) & 0x80000000) != 0; }
__device__ void sync_grids(unsigned expected, volatile unsigned* arrived) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const bool is_master = blockIdx.x == 0;
    unsigned nb = 1;
    if (is_master) nb = 0x80000000 - (expected - 1);
    __threadfence();
    const unsigned old_arrive = atomicAdd((unsigned*)arrived, nb);
    while (!bar_has_flipped(old_arrive, *arrived)) {}
    __threadfence();
  }
  __syncthreads();
}
}  // namespace details

extern "C" __global__ void kernel(int* rows, unsigned* workspace) {
  const int t = threadIdx.x, b = blockIdx.x, n = gridDim.x;
  for (int step = 0; step < 2; ++step) {  // Each row becomes the sum of the other two rows.
    const int sum = rows[(b + 1) % n * 32 + t] + rows[(b + 2) % n * 32 + t];
    details::sync_grids(n, workspace);
    rows[b * 32 + t] = sum;
    details::sync_grids(n, workspace);
  }
}
