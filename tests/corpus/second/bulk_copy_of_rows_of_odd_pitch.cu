// wrong: misaligned, fault
// The pitch of the rows is 18 floats (72 bytes), so every odd row starts 8 bytes after a multiple of 16 (PTX ISA, cp.async.bulk: source, destination and size must be multiples of 16 bytes).
// launch: {"grid": [3], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [3, 18], "dtype": "float32"}, {"zeros": [3, 16], "dtype": "float32"}]}
template <int Columns, int Pitch>
struct RowLoader {
  alignas(16) float row[Columns];
  alignas(8) unsigned long long bar;
  __device__ unsigned a(const void* p) const { return (unsigned)__cvta_generic_to_shared(p); }
  __device__ void start(const float* matrix, int r) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(a(&bar)) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(a(&bar)), "n"(Columns * 4) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"  // <-- here
                 ::"r"(a(row)), "l"(matrix + r * Pitch), "n"(Columns * 4), "r"(a(&bar)) : "memory");  // <-- here
  }
  __device__ void finish() {
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra W; }" ::"r"(a(&bar)) : "memory");
  }
};

extern "C" __global__ void kernel(const float* matrix, float* out) {
  __shared__ RowLoader<16, 18> loader;
  if (threadIdx.x == 0) loader.start(matrix, blockIdx.x);  // <-- here
  __syncthreads();
  loader.finish();
  if (threadIdx.x < 16) out[16 * blockIdx.x + threadIdx.x] = loader.row[threadIdx.x];
}
