// right
// The two halves of a warp diverge, and each half reduces with its own mask and a different number of steps. Each mask contains only lanes of its branch, which all execute the same instruction.
// launch: {"grid": [1], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [32], "dtype": "int32"}, {"zeros": [32], "dtype": "int32"}]}
// result: argument 1 equals np.r_[np.full(16, a0[:16].sum()), np.repeat(a0[16:].reshape(4, 4).max(axis=1), 4)]
template <int Width>
__device__ unsigned tile_mask() {  // The mask contains the lanes of this thread's tile.
  return ((1u << Width) - 1) << (threadIdx.x % 32 / Width * Width);
}

extern "C" __global__ void kernel(const int* x, int* y) {
  const int lane = threadIdx.x;
  int v = x[lane];
  if (lane < 16) {
    for (int o = 8; o; o /= 2) v += __shfl_xor_sync(0x0000ffffu, v, o);
  } else {
    for (int o = 2; o; o /= 2) v = max(v, __shfl_xor_sync(tile_mask<4>(), v, o, 4));
    __syncwarp(tile_mask<4>());
  }
  y[lane] = v;
}
