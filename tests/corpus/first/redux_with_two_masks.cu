// wrong: barrier-divergence, deadlock
// The width of the row determines the mask: the lower half of a warp reduces over 16 lanes, and the mask of the upper half contains all 32 lanes (PTX ISA, redux.sync: executing threads must agree on membermask, each waits for all lanes it names).
// launch: {"grid": [1], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [32], "dtype": "int32"}, {"zeros": [32], "dtype": "int32"}]}
extern "C" __global__ void kernel(const int* v, int* out) {
  const int lane = threadIdx.x;
  const unsigned width_mask = lane < 16 ? 0x0000ffffu : 0xffffffffu;
  int s;
  asm volatile("redux.sync.add.s32 %0, %1, %2;" : "=r"(s) : "r"(v[lane]), "r"(width_mask));  // <-- here
  out[lane] = s;
}
