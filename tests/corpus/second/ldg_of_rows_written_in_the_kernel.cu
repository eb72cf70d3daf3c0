// wrong: race, missing-proxy-fence
// The second pass reads by __ldg (ld.global.nc) rows that the first pass of the same kernel wrote. The non-coherent path requires memory that is read-only for the lifetime of the kernel (CUDA guide, __ldg; PTX ISA, ld.global.nc).
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [64], "dtype": "float32"}, {"zeros": [64], "dtype": "float32"}, {"zeros": [64], "dtype": "float32"}]}
// two-pass stencil, fused from two kernels

__device__ float at(const float* p, int i, int n) { return __ldg(p + min(max(i, 0), n - 1)); }  // <-- here

extern "C" __global__ void kernel(const float* in, float* tmp, float* out) {
  const int n = blockDim.x, i = threadIdx.x;
  tmp[i] = 0.25f * at(in, i - 1, n) + 0.5f * at(in, i, n) + 0.25f * at(in, i + 1, n);  // <-- here
  __syncthreads();
  out[i] = 0.25f * at(tmp, i - 1, n) + 0.5f * at(tmp, i, n) + 0.25f * at(tmp, i + 1, n);  // <-- here
}
