// wrong: transaction-count, race, barrier-use, deadlock
// The producer arrives first and declares the bytes afterwards. The only arrival ends the phase at once, so expect_tx counts for the next phase (PTX ISA, mbarrier.expect_tx: it must come before the arrival that may complete the phase).
// launch: {"grid": [1], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [64], "dtype": "int32"}, {"zeros": [64], "dtype": "int32"}]}
extern "C" __global__ void kernel(const int* in, int* out) {
  __shared__ alignas(128) int tile[64];
  __shared__ alignas(8) unsigned long long mbar;
  const unsigned bar = (unsigned)__cvta_generic_to_shared(&mbar);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");  // <-- here
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 256;" ::"r"(bar) : "memory");  // <-- here
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"  // <-- here
                 ::"r"((unsigned)__cvta_generic_to_shared(tile)), "l"(in), "r"(bar) : "memory");  // <-- here
  }
  __syncwarp();
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra L; }" ::"r"(bar) : "memory");  // <-- here
  out[threadIdx.x] = tile[threadIdx.x];            // <-- here
  out[threadIdx.x + 32] = tile[threadIdx.x + 32];  // <-- here
}
