// wrong: race
// The last iteration still waits with cp.async.wait_group 1, although no newer group was committed. The tile that this iteration reads may not have arrived (PTX ISA, cp.async.wait_group N: up to N of the most recent groups may be pending).
// launch: {"grid": [1], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [4, 128], "dtype": "float32"}, {"zeros": [128], "dtype": "float32"}]}
__device__ __forceinline__ void cp_async16(void* s, const void* g) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(s)), "l"(g) : "memory");  // <-- here
}
extern "C" __global__ void kernel(const float* src, float* dst) {
  __shared__ alignas(16) float buf[2][128];
  const int t = threadIdx.x;
  float acc[4] = {0, 0, 0, 0};
  cp_async16(&buf[0][4 * t], src + 4 * t);
  asm volatile("cp.async.commit_group;" ::: "memory");
  for (int k = 0; k < 4; ++k) {
    if (k + 1 < 4) {
      cp_async16(&buf[(k + 1) & 1][4 * t], src + 128 * (k + 1) + 4 * t);  // <-- here
      asm volatile("cp.async.commit_group;" ::: "memory");
    }
    asm volatile("cp.async.wait_group 1;" ::: "memory");  // <-- here
    __syncthreads();
    for (int j = 0; j < 4; ++j) acc[j] += buf[k & 1][(4 * t + j + 4) % 128];  // <-- here
    __syncthreads();
  }
  for (int j = 0; j < 4; ++j) dst[4 * t + j] = acc[j];
}
