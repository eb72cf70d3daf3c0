// wrong: race
// The consumer reads the next stage into registers before it waits for the full barrier of that stage. The writes of a bulk copy are visible only to a thread that has observed the phase of the mbarrier (PTX ISA, cp.async.bulk; mbarrier.try_wait).
// launch: {"grid": [1], "block": [64], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [4, 64], "dtype": "float32"}, {"zeros": [64], "dtype": "float32"}]}
namespace cute {
__device__ inline unsigned cast_smem_ptr_to_uint(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ inline void initialize_barrier(unsigned long long& b, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(cast_smem_ptr_to_uint(&b)), "r"(count));
}
__device__ inline void set_barrier_transaction_bytes(unsigned long long& b, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(cast_smem_ptr_to_uint(&b)), "r"(bytes));
}
__device__ inline void wait_barrier(unsigned long long& b, int phase) {
  asm volatile(
      "{\n.reg .pred P1;\nLAB_WAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n@P1 bra DONE;\nbra LAB_WAIT;\nDONE:\n}" ::"r"(cast_smem_ptr_to_uint(&b)), "r"(phase) : "memory");
}
struct SM90_BULK_COPY_G2S {
  __device__ static void copy(const void* gmem, unsigned long long* mbar, void* smem, int bytes) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(cast_smem_ptr_to_uint(smem)), "l"(gmem), "r"(bytes), "r"(cast_smem_ptr_to_uint(mbar)) : "memory");
  }
};
}  // namespace cute

constexpr int kStages = 4;
struct alignas(128) SharedStorage { float smem_A[kStages][64]; unsigned long long full[kStages]; };

extern "C" __global__ void kernel(const float* gA, float* gC) {
  __shared__ SharedStorage storage;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) cute::initialize_barrier(storage.full[s], 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0)
    for (int s = 0; s < kStages; ++s) {
      cute::set_barrier_transaction_bytes(storage.full[s], 256);
      cute::SM90_BULK_COPY_G2S::copy(gA + 64 * s, &storage.full[s], storage.smem_A[s], 256);  // <-- here
    }
  cute::wait_barrier(storage.full[0], 0);
  float fragment = storage.smem_A[0][threadIdx.x], sum = 0;
  for (int s = 0; s < kStages; ++s) {
    float next = s + 1 < kStages ? storage.smem_A[s + 1][63 - threadIdx.x] : 0.f;  // <-- here
    if (s + 1 < kStages) cute::wait_barrier(storage.full[s + 1], 0);  // <-- here
    sum += fragment;
    fragment = next;
  }
  gC[threadIdx.x] = sum;
}
