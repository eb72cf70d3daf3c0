// right
// Two of five warps return first, and the other warps wait at a barrier and shuffle with the full mask. The masks are complete, because whole warps returned, and the barrier counts the remaining 96 threads (CUDA guide, Warp Shuffle Functions; PTX ISA, barrier.cta with a thread count).
// launch: {"grid": [2], "block": [160], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [2, 3, 32], "dtype": "float32"}, {"zeros": [2, 3], "dtype": "float32"}, {"scalar": 3, "dtype": "int32"}]}
// result: argument 1 equals a0.max(axis=2) + a0.sum(axis=(1, 2))[:, None]
constexpr unsigned kFullMask = 0xffffffffu;
struct Sum { __device__ float operator()(float a, float b) const { return a + b; } };
struct Max { __device__ float operator()(float a, float b) const { return fmaxf(a, b); } };
template <typename Op>
__device__ float warp_all_reduce(float v, Op op) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) v = op(v, __shfl_xor_sync(kFullMask, v, offset));
  return v;
}

extern "C" __global__ void kernel(const float* x, float* out, int rows) {
  __shared__ float row_sum[5];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp >= rows) return;
  const float v = x[(blockIdx.x * rows + warp) * 32 + lane];
  const float maximum = warp_all_reduce(v, Max{});
  const float sum = warp_all_reduce(v, Sum{});
  if (lane == 0) row_sum[warp] = sum;
  asm volatile("bar.sync 1, %0;" ::"r"(rows * 32) : "memory");
  const float total = warp_all_reduce(lane < rows ? row_sum[lane] : 0.f, Sum{});
  if (lane == 0) out[blockIdx.x * rows + warp] = maximum + total;
}
