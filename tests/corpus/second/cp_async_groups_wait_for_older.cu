// right
// The loop reads a stage while later cp.async groups are pending, and commits empty groups at the end, so that wait_group 1 always waits for the stage. The CTA barrier after the wait makes the bytes of every thread visible (PTX ISA, cp.async.wait_group: all but the N most recent groups are complete).
// launch: {"grid": [2], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [2, 6, 128], "dtype": "float32"}, {"zeros": [2, 128], "dtype": "float32"}]}
// result: argument 1 equals a0[:, :, ::-1].sum(axis=1)
constexpr int kStages = 3, kTiles = 6, kTile = 128;

__device__ void cp_async_16(void* dst, const void* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(dst)), "l"(src) : "memory");
}
__device__ void cp_async_fence() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ void cp_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

extern "C" __global__ void kernel(const float* x, float* out) {
  __shared__ alignas(16) float smem[kStages][kTile];
  const int t = threadIdx.x;
  const float* tiles = x + blockIdx.x * kTiles * kTile;
  for (int k = 0; k < kStages - 1; ++k) {
    cp_async_16(&smem[k][4 * t], tiles + k * kTile + 4 * t);
    cp_async_fence();
  }
  float sum[4] = {0, 0, 0, 0};
  for (int k = 0; k < kTiles; ++k) {
    cp_async_wait<kStages - 2>();
    __syncthreads();
    const int next = k + kStages - 1;
    if (next < kTiles) cp_async_16(&smem[next % kStages][4 * t], tiles + next * kTile + 4 * t);
    cp_async_fence();
    for (int i = 0; i < 4; ++i) sum[i] += smem[k % kStages][kTile - 1 - (t + 32 * i)];
  }
  for (int i = 0; i < 4; ++i) out[blockIdx.x * kTile + t + 32 * i] = sum[i];
}
