// wrong: barrier-divergence, deadlock, fault
// One warp of the producer warpgroup executes setmaxnreg.dec, and the other three warps do not (PTX ISA, setmaxnreg.sync.aligned: all warps of the warpgroup must execute the same instruction).
// launch: {"grid": [1], "block": [256], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [256], "dtype": "float32"}, {"zeros": [256], "dtype": "float32"}]}
template <int Registers> __device__ void warpgroup_reg_dealloc() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(Registers)); }  // <-- here
template <int Registers> __device__ void warpgroup_reg_alloc() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(Registers)); }  // <-- here

extern "C" __global__ void __launch_bounds__(256, 1) kernel(const float* x, float* y) {
  __shared__ float tile[256];
  if (threadIdx.x < 32) {
    warpgroup_reg_dealloc<40>();  // <-- here
    for (int i = threadIdx.x; i < 256; i += 32) tile[i] = x[i];
  } else if (threadIdx.x >= 128) {
    warpgroup_reg_alloc<208>();  // <-- here
  }
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x];
}
