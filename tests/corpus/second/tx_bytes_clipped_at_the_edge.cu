// wrong: transaction-count, race
// At the edge of the tensor, the producer expects only the rows inside. A tiled load always copies its whole box, including zeros, and completes the full byte count (PTX ISA, cp.async.bulk.tensor; CUDA guide: out-of-bounds elements are filled).
// launch: {"grid": [2], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [12, 32], "dtype": "float32"}, {"map": 0, "box_dim": [8, 32], "swizzle": "NONE"}, {"zeros": [2, 32], "dtype": "float32"}]}
struct alignas(64) CUtensorMap_ { char bytes[128]; };
struct Params { static constexpr int BM = 8, BN = 32, M = 12; };

extern "C" __global__ void kernel(const float*, const __grid_constant__ CUtensorMap_ tma_a, float* out) {
  __shared__ alignas(128) float smA[Params::BM][Params::BN];
  __shared__ alignas(8) unsigned long long full;
  const unsigned full_addr = (unsigned)__cvta_generic_to_shared(&full);
  const int row0 = blockIdx.x * Params::BM;
  const int valid_rows = min(Params::BM, Params::M - row0);
  if (threadIdx.x == 0) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&tma_a) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(full_addr), "r"(1));  // <-- here
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned tx = valid_rows * Params::BN * sizeof(float);  // The byte count includes only rows inside the matrix.
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full_addr), "r"(tx) : "memory");  // <-- here
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"  // <-- here
                 ::"r"((unsigned)__cvta_generic_to_shared(smA)), "l"(&tma_a), "r"(0), "r"(row0), "r"(full_addr) : "memory");  // <-- here
  }
  unsigned ok = 0;
  while (!ok) {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.b32 %0, 1, 0, p; }"  // <-- here
                 : "=r"(ok) : "r"(full_addr) : "memory");  // <-- here
  }
  if (threadIdx.x < 32) {
    float s = 0;
    for (int r = 0; r < Params::BM; ++r) s += smA[r][threadIdx.x];  // <-- here
    out[blockIdx.x * 32 + threadIdx.x] = s;
  }
}
