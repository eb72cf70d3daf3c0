// wrong: race
// The kernel is threadFenceReduction without the __threadfence(). The relaxed atomicAdd of the ticket does not order the partial sum of the block before it (CUDA guide, Memory Fence Functions; PTX ISA: atom is .relaxed by default).
// launch: {"grid": [4], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [256], "dtype": "float32"}, {"zeros": [4], "dtype": "float32"}, {"zeros": [1], "dtype": "float32"}]}
__device__ unsigned int retirementCount = 0;

__device__ float blockReduce(float v, float* sdata) {
  sdata[threadIdx.x] = v;
  __syncthreads();
  for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) sdata[threadIdx.x] += sdata[threadIdx.x + s];
    __syncthreads();
  }
  return sdata[0];
}

extern "C" __global__ void kernel(const float* g_idata, float* g_partial, float* g_odata) {
  __shared__ float sdata[64];
  __shared__ bool amLast;
  float sum = blockReduce(g_idata[blockIdx.x * blockDim.x + threadIdx.x], sdata);
  if (threadIdx.x == 0) {
    g_partial[blockIdx.x] = sum;  // <-- here
    unsigned int ticket = atomicInc(&retirementCount, gridDim.x);  // <-- here
    amLast = (ticket == gridDim.x - 1);
  }
  __syncthreads();
  if (amLast && threadIdx.x == 0) {
    float total = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) total += g_partial[i];  // <-- here
    g_odata[0] = total;
    retirementCount = 0;
  }
}
