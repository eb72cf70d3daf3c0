// wrong: race, uninitialized-read
// The look-back publishes the status of the tile first and its aggregate afterwards, in two words. The release covers only preceding writes (PTX ISA, Release and acquire patterns; CUB stores value and status in one word, or value first).
// launch: {"grid": [4], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [128], "dtype": "int32"}, {"zeros": [4], "dtype": "int32"}, {"zeros": [4], "dtype": "int32"}, {"zeros": [4], "dtype": "int32"}]}
__device__ void publish(int* status, int* value, int tile, int v) {
  asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(status + tile) : "memory");
  asm volatile("st.global.s32 [%0], %1;" ::"l"(value + tile), "r"(v) : "memory");  // <-- here
}
__device__ int prefix_of(const int* status, const int* value, int tile) {
  int ready;
  do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(ready) : "l"(status + tile) : "memory"); while (!ready);
  int v;
  asm volatile("ld.global.s32 %0, [%1];" : "=r"(v) : "l"(value + tile) : "memory");  // <-- here
  return v;
}

extern "C" __global__ void kernel(const int* x, int* status, int* value, int* exclusive) {
  const int tile = blockIdx.x;
  const int sum = __reduce_add_sync(0xffffffffu, x[32 * tile + threadIdx.x]);
  if (threadIdx.x == 0) {
    int before = 0;
    if (tile) before = prefix_of(status, value, tile - 1);  // <-- here
    exclusive[tile] = before;
    publish(status, value, tile, before + sum);  // <-- here
  }
}
