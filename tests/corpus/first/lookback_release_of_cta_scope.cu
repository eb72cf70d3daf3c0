// wrong: race
// Tiles of different CTAs pass their carry by a release and an acquire of .cta scope. These scopes do not include threads of the other CTA (PTX ISA, Scope and Morally strong operations).
// launch: {"grid": [3], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [96], "dtype": "int32"}, {"zeros": [4], "dtype": "int32"}, {"zeros": [4], "dtype": "int32"}]}
#define ST_RELEASE(p, v) asm volatile("st.release.cta.global.s32 [%0], %1;" ::"l"(p), "r"(v) : "memory")
#define LD_ACQUIRE(v, p) asm volatile("ld.acquire.cta.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory")

extern "C" __global__ void kernel(const int* x, int* carry, int* flag) {
  int v = x[32 * blockIdx.x + threadIdx.x];
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o);
  if (threadIdx.x != 0) return;
  int ready = blockIdx.x == 0, before = 0;
  while (!ready) LD_ACQUIRE(ready, flag + blockIdx.x);  // <-- here
  if (blockIdx.x) before = carry[blockIdx.x];  // <-- here
  carry[blockIdx.x + 1] = before + v;          // <-- here
  ST_RELEASE(flag + blockIdx.x + 1, 1);        // <-- here
}
