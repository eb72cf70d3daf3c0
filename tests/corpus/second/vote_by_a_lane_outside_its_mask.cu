// wrong: barrier-divergence
// The kernel computes the mask of active rows before it includes the last lanes again, so lanes outside the mask execute the vote (PTX ISA, vote.sync: undefined if the executing thread is not in membermask).
// launch: {"grid": [1], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [20], "dtype": "int32"}, {"zeros": [32], "dtype": "int32"}, {"scalar": 20, "dtype": "int32"}]}
struct Vote {
  unsigned mask;
  __device__ explicit Vote(bool active) : mask(__ballot_sync(0xffffffffu, active)) {}
  __device__ bool any(bool p) const {
    int r;
    asm volatile("{ .reg .pred p, q; setp.ne.s32 p, %1, 0; vote.sync.any.pred q, p, %2; selp.s32 %0, 1, 0, q; }" : "=r"(r) : "r"((int)p), "r"(mask));  // <-- here
    return r;
  }
};

extern "C" __global__ void kernel(const int* values, int* out, int n) {
  const bool in_range = threadIdx.x < n;
  Vote rows(in_range);
  const int v = values[min((int)threadIdx.x, n - 1)];  // The index is clamped, so that all lanes continue.
  out[threadIdx.x] = rows.any(v > 15);  // <-- here
}
