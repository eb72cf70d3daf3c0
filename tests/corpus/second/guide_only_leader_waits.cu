// wrong: race
// Only thread 0 waits for the bulk copy. The other threads read the buffer without a barrier after that wait, so the copy is not visible to them (PTX ISA, cp.async.bulk: completion is observed through the mbarrier).
// launch: {"grid": [2], "block": [128], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [256], "dtype": "int32"}, {"zeros": [256], "dtype": "int32"}]}
#define SMEM_PTR(p) static_cast<unsigned>(__cvta_generic_to_shared(p))
static constexpr unsigned buf_len = 128;

extern "C" __global__ void kernel(const int* data, int* out) {
  // The buffer in shared memory is aligned to 16 bytes.
  __shared__ alignas(16) int smem_data[buf_len];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ alignas(8) unsigned long long bar;
  const size_t offset = blockIdx.x * buf_len;

  // 1. a) one thread initializes the barrier, b) makes it visible to the async proxy
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(SMEM_PTR(&bar)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();

  // 2. Initiate the copy, 3. wait for the data
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"  // <-- here
                 ::"r"(SMEM_PTR(smem_data)), "l"(data + offset), "r"((unsigned)sizeof(smem_data)), "r"(SMEM_PTR(&bar)) : "memory");  // <-- here
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SMEM_PTR(&bar)), "r"((unsigned)sizeof(smem_data)) : "memory");
    unsigned done = 0;
    while (!done)
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                   : "=r"(done) : "r"(SMEM_PTR(&bar)) : "memory");
  }

  // 4. Compute on the data
  out[offset + threadIdx.x] = smem_data[threadIdx.x] + 1;  // <-- here
}
