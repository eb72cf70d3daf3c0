// right
// One thread stores bytes that 128 threads wrote by stmatrix, after a named barrier for four warps. Each writing thread executes a proxy fence before it arrives, and the fifth warp does not arrive at the barrier (PTX ISA, fence.proxy.async; barrier.cta with a thread count).
// launch: {"grid": [2], "block": [160], "cluster": null, "shmem_size": 0, "arguments": [{"zeros": [128, 16], "dtype": "float16"}, {"map": 0, "box_dim": [64, 16], "swizzle": "NONE"}, {"arange": [128, 16], "dtype": "float32"}]}
// result: argument 0 equals (a2 / 2).astype(np.float16)
struct alignas(64) TmaDesc { unsigned long long w[16]; };
__device__ inline unsigned pack_half2(float lo, float hi) {
  unsigned r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
struct SM90_U32x4_STSM_N {
  __device__ static void copy(const unsigned (&r)[4], unsigned dst) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(dst), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
  }
};

extern "C" __global__ void kernel(void*, const __grid_constant__ TmaDesc desc, const float* accumulators) {
  __shared__ alignas(128) unsigned short staging[64 * 16];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp == 4) return;  // The load warp ends first.
  const unsigned base = (unsigned)__cvta_generic_to_shared(staging);
  unsigned fragment[4];
  for (int i = 0; i < 4; ++i) {
    const int row = blockIdx.x * 64 + warp * 16 + lane / 4 + 8 * (i & 1), column = 8 * (i >> 1) + 2 * (lane % 4);
    const float* p = accumulators + row * 16 + column;
    fragment[i] = pack_half2(p[0] * .5f, p[1] * .5f);
  }
  SM90_U32x4_STSM_N::copy(fragment, base + ((warp * 16 + lane % 16) * 16 + lane / 16 * 8) * 2);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("bar.sync 1, 128;" ::: "memory");
  if (threadIdx.x == 96) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&desc), "r"(0), "r"(64 * blockIdx.x), "r"(base) : "memory");
    asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group.read 0;" ::: "memory");
  }
}
