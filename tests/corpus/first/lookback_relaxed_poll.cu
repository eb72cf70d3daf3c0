// wrong: race
// The writer executes a fence before it sets its flag. The reader polls with ld.relaxed, and reads the partial sum without a fence after the loop (PTX ISA, Acquire pattern: a relaxed read needs a later fence.acq_rel).
// launch: {"grid": [3], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [96], "dtype": "float32"}, {"zeros": [96], "dtype": "float32"}, {"zeros": [3], "dtype": "uint32"}]}
struct Chain {
  float* carry;  // Each tile has 32 floats.
  unsigned* flag;
  __device__ float take(int tile) const {
    unsigned f = 0;
    while (f == 0) asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(f) : "l"(flag + tile) : "memory");
    return carry[32 * tile + threadIdx.x];  // <-- here
  }
  __device__ void give(int tile, float v) const {
    carry[32 * tile + threadIdx.x] = v;  // <-- here
    __syncwarp();
    if (threadIdx.x != 0) return;
    __threadfence();
    asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" ::"l"(flag + tile) : "memory");
  }
};

extern "C" __global__ void kernel(const float* x, float* carry, unsigned* flag) {
  const Chain chain{carry, flag};
  const int tile = blockIdx.x;
  float v = x[32 * tile + threadIdx.x];
  if (tile > 0) v += chain.take(tile - 1);  // <-- here
  chain.give(tile, v);  // <-- here
}
