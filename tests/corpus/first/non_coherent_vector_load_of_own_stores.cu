// wrong: race
// A second pass reads rows by ld.global.nc that the same block has written in the first pass. __syncthreads does not order loads through the non-coherent path (PTX ISA, ld.global.nc: the memory must be read-only for the kernel's duration).
// launch: {"grid": [2], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [512], "dtype": "float32"}, {"zeros": [512], "dtype": "float32"}]}
struct Vec4 { float x, y, z, w; };
__device__ __forceinline__ Vec4 ldg_stream(const float* p) {
  Vec4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"  // <-- here
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));  // <-- here
  return v;
}

extern "C" __global__ void kernel(float* x, float* y) {
  float* mine = x + 256 * blockIdx.x;
  for (int i = threadIdx.x; i < 256; i += 64) mine[i] = mine[i] * 2.f + 1.f;  // <-- here
  __syncthreads();
  const Vec4 v = ldg_stream(mine + 4 * (63 - threadIdx.x));  // <-- here
  float* o = y + 256 * blockIdx.x + 4 * threadIdx.x;
  o[0] = v.x; o[1] = v.y; o[2] = v.z; o[3] = v.w;
}
