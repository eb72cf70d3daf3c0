// wrong: early-exit, cluster
// The CTAs synchronize before they read each other's partial sums, but not afterwards. A CTA may exit while its peer still reads its shared memory (CUDA guide, Distributed Shared Memory: the block must exist until remote accesses complete).
// launch: {"grid": [2], "block": [64], "cluster": [2], "shmem_size": 0, "arguments": [{"arange": [4, 64], "dtype": "float32"}, {"zeros": [4], "dtype": "float32"}]}
__device__ float ld_dsmem(const float* p, unsigned rank) {
  float v;
  asm volatile("{ .reg .b32 a; mapa.shared::cluster.u32 a, %1, %2; ld.shared::cluster.f32 %0, [a]; }"  // <-- here
               : "=f"(v) : "r"((unsigned)__cvta_generic_to_shared(p)), "r"(rank) : "memory");  // <-- here
  return v;
}

extern "C" __global__ void kernel(const float* x, float* norm) {
  __shared__ float partial[2];
  float v = x[blockIdx.x * 64 + threadIdx.x];
  for (int offset = 16; offset; offset >>= 1) v += __shfl_down_sync(~0u, v, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (threadIdx.x == 0) {
    float total = 0;
    for (unsigned r = 0; r < 2; ++r) total += ld_dsmem(partial, r) + ld_dsmem(partial + 1, r);  // <-- here
    norm[blockIdx.x] = partial[0] + partial[1] - total / 2;
  }
}  // <-- here
