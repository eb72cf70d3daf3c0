// wrong: early-exit
// A persistent loop also loads the tile after the last tile, and the block ends without a wait for this load's mbarrier (PTX ISA, cp.async.bulk: the destination and the mbarrier must stay valid until the copy completes).
// launch: {"grid": [1], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [4, 64], "dtype": "float32"}, {"zeros": [3], "dtype": "float32"}]}
struct Ring {
  alignas(128) float tile[2][64];
  alignas(8) unsigned long long bar[2];
};
__device__ unsigned addr(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void fetch(Ring& r, int i, const float* x) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(addr(&r.bar[i & 1])) : "memory");  // <-- here
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"  // <-- here
               ::"r"(addr(r.tile[i & 1])), "l"(x + 64 * i), "r"(addr(&r.bar[i & 1])) : "memory");  // <-- here
}

extern "C" __global__ void kernel(const float* x, float* sums) {
  __shared__ Ring r;
  if (threadIdx.x == 0) {
    for (int b = 0; b < 2; ++b) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(addr(&r.bar[b])) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    fetch(r, 0, x);
  }
  __syncthreads();
  for (int i = 0; i < 3; ++i) {
    if (threadIdx.x == 0) fetch(r, i + 1, x);  // <-- here
    asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra L; }" ::"r"(addr(&r.bar[i & 1])), "r"(i / 2) : "memory");
    float v = r.tile[i & 1][threadIdx.x] + r.tile[i & 1][threadIdx.x + 32];
    for (int o = 16; o; o /= 2) v += __shfl_xor_sync(~0u, v, o);
    if (threadIdx.x == 0) sums[i] = v;
    __syncwarp();
  }
}  // <-- here
