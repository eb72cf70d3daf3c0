// wrong: barrier-divergence, deadlock
// A reduction over the first 16 lanes shuffles with the full mask inside `if (lane < 16)`. Half of the lanes in the mask never execute the shuffle (PTX ISA, shfl.sync membermask; CUDA guide, Warp Shuffle Functions).
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [64], "dtype": "float32"}, {"zeros": [2], "dtype": "float32"}]}
#define FULL_MASK 0xffffffff
template <typename T, typename Op>
__device__ T reduce16(T v, Op op) {
#pragma unroll
  for (int offset = 8; offset > 0; offset /= 2) v = op(v, __shfl_down_sync(FULL_MASK, v, offset, 16));  // <-- here
  return v;
}

extern "C" __global__ void kernel(const float* in, float* out) {
  __shared__ float pairs[64];
  const int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
  pairs[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  if (lane < 16) {
    float v = pairs[32 * warp + lane] + pairs[32 * warp + lane + 16];
    v = reduce16(v, [](float a, float b) { return a + b; });  // <-- here
    if (lane == 0) pairs[32 * warp] = v;
  }
  __syncthreads();
  if (threadIdx.x < 2) out[threadIdx.x] = pairs[32 * threadIdx.x];
}
