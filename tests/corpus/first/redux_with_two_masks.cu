// wrong: barrier-divergence, deadlock
// The row's width decides the mask: the lower half reduces over 16 lanes, the upper half of the same warp names all 32 (PTX ISA, redux.sync: executing threads must agree on membermask, each waits for all lanes it names).
// launch: {"grid": [1], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [32], "dtype": "int32"}, {"zeros": [32], "dtype": "int32"}]}
extern "C" __global__ void kernel(const int* v, int* out) {
  const int lane = threadIdx.x;
  const unsigned width_mask = lane < 16 ? 0x0000ffffu : 0xffffffffu;
  int s;
  asm volatile("redux.sync.add.s32 %0, %1, %2;" : "=r"(s) : "r"(v[lane]), "r"(width_mask));  // <-- here
  out[lane] = s;
}
