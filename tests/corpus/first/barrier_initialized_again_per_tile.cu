// wrong: barrier-use
// The loop initializes the same mbarrier for each tile without mbarrier.inval, to restart at parity 0 (PTX ISA, mbarrier.init: init of a location that holds a valid mbarrier object is undefined).
// launch: {"grid": [1], "block": [32], "cluster": null, "shmem_size": 0, "arguments": [{"arange": [3, 32], "dtype": "float32"}, {"zeros": [3, 32], "dtype": "float32"}]}
template <int Tiles>
__device__ void run(const float* in, float* out) {
  __shared__ alignas(16) float tile[32];
  __shared__ unsigned long long bar;
  const unsigned b = (unsigned)__cvta_generic_to_shared(&bar), s = (unsigned)__cvta_generic_to_shared(tile);
  for (int t = 0; t < Tiles; ++t) {
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b) : "memory");  // <-- here
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(b) : "memory");
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];" ::"r"(s), "l"(in + 32 * t), "r"(b) : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra L; }" ::"r"(b) : "memory");
    out[32 * t + threadIdx.x] = tile[threadIdx.x];
    __syncthreads();
  }
}

extern "C" __global__ void kernel(const float* in, float* out) { run<3>(in, out); }  // <-- here
