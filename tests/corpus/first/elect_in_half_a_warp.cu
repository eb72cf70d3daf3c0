// wrong: barrier-divergence, deadlock
// elect.sync with the full mask is in a branch that only the lower 16 lanes take. The upper lanes continue to their loads (PTX ISA, elect.sync: all threads in membermask must execute the same elect.sync).
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [64], "dtype": "float32"}, {"zeros": [64], "dtype": "float32"}]}
namespace cute_like {
__device__ bool elect_one_sync() {
  unsigned pred = 0, leader = 0;
  asm volatile("{\n\t.reg .pred p;\n\t.reg .b32 l;\n\t"
               "elect.sync l|p, 0xffffffff;\n\t"  // <-- here
               "selp.b32 %0, 1, 0, p;\n\tmov.b32 %1, l;\n\t}"
               : "=r"(pred), "=r"(leader));  // <-- here
  return pred;
}
}  // namespace cute_like

extern "C" __global__ void kernel(const float* x, float* y) {
  float v = x[threadIdx.x];
  if (threadIdx.x < 16) {
    if (cute_like::elect_one_sync()) v += 100.f;  // <-- here
  }
  y[threadIdx.x] = v;
}
