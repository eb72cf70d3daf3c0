// wrong: wgmma-order
// The epilogue stores the accumulator registers after commit_group but before wait_group, while wgmma.mma_async may still write them (PTX ISA, wgmma.mma_async: accessing the registers before wgmma.wait_group is undefined).
// launch: {"grid": [1], "block": [128], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [64, 16], "dtype": "float16"}, {"arange": [8, 16], "dtype": "float16"}, {"zeros": [64, 8], "dtype": "float32"}]}
using half_bits = unsigned short;
__device__ unsigned long long smem_desc(const void* p, unsigned lbo, unsigned sbo) {
  const unsigned long long a = (unsigned)__cvta_generic_to_shared(p);
  return (a & 0x3FFFF) >> 4 | (unsigned long long)(lbo >> 4) << 16 | (unsigned long long)(sbo >> 4) << 32;
}
struct MMA_64x8x16_F32F16F16_SS {
  __device__ static void fma(unsigned long long a, unsigned long long b, float (&d)[4]) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 0, 1, 1, 0, 0;"  // <-- here
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b));  // <-- here
  }
};
__device__ void warpgroup_arrive() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void warpgroup_commit_batch() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ void warpgroup_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }

extern "C" __global__ void __launch_bounds__(128) kernel(const half_bits* A, const half_bits* B, float* D) {
  __shared__ alignas(128) half_bits sA[64 * 16], sB[8 * 16];
  const int t = threadIdx.x;
  for (int i = t; i < 64 * 16; i += 128) sA[(i % 16 / 8) * 512 + i / 16 * 8 + i % 8] = A[i];
  sB[(t % 16 / 8) * 64 + t / 16 * 8 + t % 8] = B[t];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();

  float d[4] = {0, 0, 0, 0};
  warpgroup_arrive();
  MMA_64x8x16_F32F16F16_SS::fma(smem_desc(sA, 1024, 128), smem_desc(sB, 128, 128), d);  // <-- here
  warpgroup_commit_batch();
  float* row = D + (t / 32 * 16 + t % 32 / 4) * 8 + t % 4 * 2;
  row[0] = d[0];  // <-- here
  row[1] = d[1];  // <-- here
  row[64] = d[2];  // <-- here
  row[65] = d[3];  // <-- here
  warpgroup_wait<0>();
}
