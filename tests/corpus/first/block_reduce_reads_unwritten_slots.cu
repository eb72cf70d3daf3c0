// wrong: uninitialized-read
// The second step of the block reduction reads 32 warp sums. The block has only three warps, and no thread clears the other slots (CUDA guide, __shared__: shared memory has no initial value).
// launch: {"grid": [1], "block": [96], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [96], "dtype": "float32"}, {"zeros": [1], "dtype": "float32"}]}
__inline__ __device__ float warpReduceSum(float val) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) val += __shfl_down_sync(0xffffffff, val, offset);
  return val;
}

__inline__ __device__ float blockReduceSum(float val) {
  static __shared__ float shared[32];
  const int lane = threadIdx.x % warpSize, wid = threadIdx.x / warpSize;
  val = warpReduceSum(val);
  if (lane == 0) shared[wid] = val;
  __syncthreads();
  if (wid == 0) {
    val = shared[lane];  // <-- here
    val = warpReduceSum(val);
  }
  return val;
}

extern "C" __global__ void kernel(const float* x, float* sum) {
  const float total = blockReduceSum(x[threadIdx.x]);  // <-- here
  if (threadIdx.x == 0) *sum = total;
}
