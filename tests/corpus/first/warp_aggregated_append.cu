// right
// The lanes that keep their element form a ballot mask. Only the leader of the mask adds to the global cursor, and a shuffle over exactly these lanes distributes the base. Every lane in the mask executes the shuffle.
// launch: {"grid": [2], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [128], "dtype": "int32"}, {"zeros": [1], "dtype": "int32"}, {"zeros": [128], "dtype": "int32"}]}
// result: argument 2 equals np.where(a0 % 3 == 0, 1, 0)
__device__ int append_slot(int* cursor, unsigned members) {
  const int lane = threadIdx.x & 31, leader = __ffs(members) - 1;
  int base = 0;
  if (lane == leader) base = atomicAdd(cursor, __popc(members));
  base = __shfl_sync(members, base, leader);
  return base + __popc(members & ((1u << lane) - 1));
}

extern "C" __global__ void kernel(const int* x, int* cursor, int* seen) {
  const int i = 64 * blockIdx.x + threadIdx.x;
  const bool keep = x[i] % 3 == 0;
  const unsigned members = __ballot_sync(0xffffffffu, keep);
  if (keep) {
    const int slot = append_slot(cursor, members);
    seen[i] = slot >= 0 && slot < 128;
  }
}
